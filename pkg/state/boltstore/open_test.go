package boltstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

func TestOpenCreatesMissingFolders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "of", "feedscale.db")
	closeStore(t, open(t, path))
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestASecondOpenIsRefusedUntilTheFirstCloses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedscale.db")
	first := open(t, path)
	second, err := boltstore.Open(path)
	if !errors.Is(err, boltstore.ErrInUse) {
		t.Fatalf("got %v, want ErrInUse", err)
	}
	if second != nil {
		t.Error("got a store beside the error")
	}
	for _, part := range []string{path, "FEEDSCALE_STATE"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
	closeStore(t, first)
	closeStore(t, open(t, path))
}

func TestOpenRefusesWhatIsNoStateFile(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, path string){
		"a short text": func(t *testing.T, path string) { write(t, path, []byte("hello")) },
		"a text of one page": func(t *testing.T, path string) {
			write(t, path, bytes.Repeat([]byte("hello "), 700))
		},
		"a long text":      func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("hello "), 100_000)) },
		"nothing but zero": func(t *testing.T, path string) { write(t, path, make([]byte, 1<<16)) },
		"another program's bbolt file": func(t *testing.T, path string) {
			change(t, path, func(tx *bolt.Tx) error {
				_, err := tx.CreateBucket([]byte("widgets"))
				return err
			})
		},
	}
	for name, create := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "feedscale.db")
			create(t, path)
			before := read(t, path)
			if _, err := boltstore.Open(path); !errors.Is(err, boltstore.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want ErrDamaged with the path", err)
			}
			if !bytes.Equal(read(t, path), before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenRefusesWhatCannotBeAFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	write(t, file, nil)
	for name, path := range map[string]string{
		"an empty path":       "",
		"a folder":            folder,
		"a path below a file": filepath.Join(file, "feedscale.db"),
	} {
		if _, err := boltstore.Open(path); err == nil || errors.Is(err, boltstore.ErrDamaged) {
			t.Errorf("%s: got %v, want an error that does not blame the content", name, err)
		}
	}
}

// A damaged file may open where the damage hits space that is not in use, the older of the two
// copies of the file's head, or the inside of a text. What must never happen is a panic, a crash,
// or a store that opens and then fails, but for a state or a sample that cannot be read and is named.
func TestADamagedFileIsRefusedOrHarmless(t *testing.T) {
	t.Parallel()
	whole := wholeFile(t)
	damages := map[string][]byte{}
	for size := 1; size < len(whole); size += 2039 {
		damages[fmt.Sprintf("cut off after %d bytes", size)] = whole[:size]
	}
	for at := 0; at+16 <= len(whole); at += 1024 {
		for _, with := range []byte{0x00, 0xff} {
			damaged := bytes.Clone(whole)
			copy(damaged[at:], bytes.Repeat([]byte{with}, 16))
			damages[fmt.Sprintf("16 bytes %#02x at %d", with, at)] = damaged
		}
	}
	const pageSize = 4096
	for at := 0; at < len(whole); at += pageSize {
		damaged := bytes.Clone(whole)
		clear(damaged[at:min(at+pageSize, len(damaged))])
		damages[fmt.Sprintf("a page of zeros at %d", at)] = damaged
	}

	path := filepath.Join(t.TempDir(), "feedscale.db")
	refused := 0
	for name, damaged := range damages {
		write(t, path, damaged)
		store, err := boltstore.Open(path)
		if err != nil {
			refused++
			if !errors.Is(err, boltstore.ErrDamaged) {
				t.Errorf("%s: got %v, want ErrDamaged", name, err)
			}
			continue
		}
		for i := range processors {
			_, err := storetest.Load(t.Context(), store, processor(i))
			if err != nil && !(strings.Contains(err.Error(), processor(i)) && strings.Contains(err.Error(), "FEEDSCALE_STATE")) {
				t.Errorf("%s: opened, but then %v", name, err)
			}
		}
		if _, err := store.Outbox(t.Context(), nil); err != nil {
			t.Errorf("%s: opened, but then %v", name, err)
		}
		for i := range processors {
			_, err := store.History(t.Context(), processor(i), time.Time{}, begin().AddDate(1, 0, 0))
			if err != nil && !strings.Contains(err.Error(), "read the sample of the history under the key") {
				t.Errorf("%s: opened, but then %v", name, err)
			}
		}
		if err := store.Prune(t.Context(), processor(0), begin().AddDate(1, 0, 0)); err != nil {
			t.Errorf("%s: opened, but then %v", name, err)
		}
		if err := store.Commit(t.Context(), "", state.State{Processor: "new", AttemptedAt: begin()}, nil); err != nil {
			t.Errorf("%s: opened, but then %v", name, err)
		}
		closeStore(t, store)
	}
	if refused == 0 {
		t.Errorf("none of %d damaged files was refused", len(damages))
	}
}

const processors = 40

func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func processor(i int) string { return fmt.Sprintf("orders-%d", i) }

// wholeFile is an undamaged state file of several pages, some of them free.
func wholeFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "feedscale.db")
	store := open(t, path)
	for i := range processors {
		event := state.Event{Processor: processor(i), Sequence: 1, Body: bytes.Repeat([]byte("x"), 50*i)}
		if err := store.Commit(t.Context(), "", state.State{Processor: processor(i), AttemptedAt: begin()}, &event); err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(t.Context(), processor(i/2), 1); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, store)
	return read(t, path)
}

func closeStore(t *testing.T, store *boltstore.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
