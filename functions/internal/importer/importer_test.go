package importer_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/importer"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// update has the tests rewrite the golden files: go test ./functions/internal/importer -update
var update = flag.Bool("update", false, "rewrite the golden files of this package")

// secret is in every place of testdata where people put secrets.
const secret = "SECRET-KEY"

// Each folder of testdata has the shapes of examples that are public: of KEDA's documentation and
// end-to-end tests, of the community scaler's documentation and samples, of the documentation,
// templates and tests of Azure Functions, and of what people wrote about them.
func TestEveryExampleIsCarriedOverOrSaid(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/*")
	testworld.Must(t, err)
	if len(folders) < 25 {
		t.Fatalf("%d examples were found", len(folders))
	}
	for _, folder := range folders {
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := importer.Convert(readFolder(t, folder), none)
			said := remarks(result)
			if err != nil {
				if _, ok := errors.AsType[yamltree.Mistakes](err); !ok || len(result.Processors) > 0 {
					t.Fatalf("got %T and %d bytes: %v", err, len(result.Processors), err)
				}
				said = err.Error() + "\n"
			}
			if strings.Contains(said+string(result.Processors), secret) {
				t.Errorf("a secret is shown:\n%s\n%s", said, result.Processors)
			}
			testworld.Golden(t, *update, name+"/remarks", said)
			if err != nil {
				return
			}
			testworld.Golden(t, *update, name+"/processors", string(result.Processors))
			loadedWithItsSettings(t, result)
		})
	}
}

// loadedWithItsSettings makes the settings that are listed, and holds that these are enough, and that
// every mistake of the processors file is said.
func loadedWithItsSettings(t *testing.T, result importer.Result) {
	t.Helper()
	made := map[string]string{}
	for _, s := range result.Settings {
		made[s.Name] = s.Value
		switch {
		case s.Value != "":
		case strings.HasSuffix(s.Name, "__accountEndpoint"):
			made[s.Name] = fmt.Sprintf("https://a%x.documents.azure.com/", s.Name)
		case strings.HasSuffix(s.Name, "__clientId"):
			made[s.Name] = "11111111-2222-3333-4444-555555555555"
		case strings.HasSuffix(s.Name, "__credential"):
			made[s.Name] = "managedidentity"
		case strings.HasSuffix(s.Name, "__accountKey"):
			made[s.Name] = "AAAA"
		default:
			made[s.Name], _ = everySetting(s.Name)
		}
	}
	lookup := func(name string) (string, bool) {
		value, ok := made[name]
		return value, ok
	}
	_, err := config.Load("the processors file", result.Processors, lookup)
	mistakes, _ := err.(yamltree.Mistakes)
	for _, m := range mistakes {
		if !slices.Contains(result.Remarks, m) {
			t.Errorf("with the settings that are listed:\n%v", m)
		}
	}
}

func TestTheDocumentationShowsWhatComesOut(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/import.md")
	testworld.Must(t, err)
	for _, folder := range []string{"testdata/documentation-keda", "testdata/documentation-functions"} {
		files := readFolder(t, folder)
		result, err := importer.Convert(files, none)
		testworld.Must(t, err)
		shown := []string{string(result.Processors)}
		for _, f := range files {
			shown = append(shown, string(f.Text))
		}
		for _, r := range result.Remarks {
			shown = append(shown, r.String())
		}
		for _, s := range result.Settings {
			shown = append(shown, s.String())
		}
		for _, text := range shown {
			if !strings.Contains(string(page), text) {
				t.Errorf("docs/import.md does not have\n%s", text)
			}
		}
	}
}

func TestSettingsThatAreThereAreNotListed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, folder, setting, value string }{
		{"a connection string", "keda-connection-from-env", "COSMOS_CONNECTION", "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=AAAA;"},
		{"an endpoint in place of one", "keda-connection-from-env", "COSMOS_CONNECTION__accountEndpoint", "https://shop.documents.azure.com/"},
		{"an endpoint", "keda-workload-identity", "COSMOS_SHOP__accountEndpoint", "https://shop.documents.azure.com/"},
		{"a connection string in place of one", "keda-workload-identity", "COSMOS_SHOP", "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=AAAA;"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			files := readFolder(t, filepath.Join("testdata", c.folder))
			without, err := importer.Convert(files, none)
			testworld.Must(t, err)
			with, err := importer.Convert(files, func(name string) (string, bool) { return c.value, name == c.setting })
			testworld.Must(t, err)
			if len(without.Settings) != 1 || len(with.Settings) != 0 {
				t.Errorf("got %v without it, and %v with it", without.Settings, with.Settings)
			}
		})
	}
}

// Whatever the files are, they are refused with mistakes, or become a processors file.
func FuzzConvert(f *testing.F) {
	folders, err := filepath.Glob("testdata/*")
	testworld.Must(f, err)
	for _, folder := range folders {
		for _, file := range readFolder(f, folder) {
			f.Add(filepath.Base(file.Name), file.Text)
		}
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		result, err := importer.Convert([]importer.File{{Name: name, Text: text}}, none)
		if err != nil {
			mistakes, ok := errors.AsType[yamltree.Mistakes](err)
			if !ok || len(mistakes) == 0 {
				t.Fatalf("got %T, want mistakes: %v", err, err)
			}
			return
		}
		_, err = config.Load("the processors file", result.Processors, everySetting)
		unsaid, _ := err.(yamltree.Mistakes)
		for _, m := range unsaid {
			if !slices.Contains(result.Remarks, m) {
				t.Fatalf("it is not said: %v", m)
			}
		}
		for _, r := range result.Remarks {
			if strings.ContainsAny(r.Text+r.Field, "\n\r") {
				t.Fatalf("not one line: %q", r)
			}
		}
	})
}

// readFolder reads what is to be imported of an example, each file with its name below the folder.
func readFolder(t testing.TB, folder string) []importer.File {
	t.Helper()
	var files []importer.File
	testworld.Must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".golden" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files = append(files, importer.File{Name: name, Text: text})
		return err
	}))
	return files
}

func remarks(result importer.Result) string {
	var b strings.Builder
	for _, r := range result.Remarks {
		fmt.Fprintln(&b, r)
	}
	for _, s := range result.Settings {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

func none(string) (string, bool) { return "", false }

func everySetting(name string) (string, bool) {
	if strings.HasSuffix(name, "tokenScope") {
		return "", false
	}
	return fmt.Sprintf("AccountEndpoint=https://a%x.documents.azure.com/;AccountKey=AAAA", name), true
}
