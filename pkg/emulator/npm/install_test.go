package npm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/npm"
)

func TestAFolderIsInstalledAgainOnlyWhereItChanged(t *testing.T) {
	cache, folder := t.TempDir(), t.TempDir()
	t.Setenv("HOME", cache)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("LocalAppData", cache)
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := func() string {
		t.Helper()
		dir, err := npm.InstallFolder(t.Context(), "script", folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"package.json", "package-lock.json", "script.mjs"} {
			want, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(want) {
				t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
			}
		}
		return dir
	}
	write("package.json", `{"name": "script", "version": "1.0.0"}`)
	write("package-lock.json", `{"name": "script", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "script", "version": "1.0.0"}}}`)
	write("script.mjs", "console.log(1)")
	first := install()
	if again := install(); again != first {
		t.Errorf("the same files are in %s and in %s", first, again)
	}
	write("script.mjs", "console.log(2)")
	if changed := install(); changed == first {
		t.Errorf("other files are in %s too", changed)
	}
}
