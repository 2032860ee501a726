package testworld

import (
	"os"
	"path/filepath"
	"testing"
)

// Golden compares a text with the file testdata/NAME.golden of the package under test, byte by
// byte. If update is set, which is the package's own flag, it writes the file instead.
func Golden(t testing.TB, update bool, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if update {
		Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		Must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	Must(t, err)
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s,\n%s", got, file, want)
	}
}
