package console_test

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// update has the tests rewrite the golden files, which are what the terminal shows, instead of
// comparing with them: go test ./functions/internal/console -update
var update = flag.Bool("update", false, "rewrite the golden files of this package")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// golden holds what is written to the file NAME.golden where it goes to no terminal, and to
// NAME-terminal.golden where it goes to one of 60 columns with colors.
func golden(t *testing.T, name string, write func(io.Writer, console.Style) error) {
	t.Helper()
	var plain, terminal strings.Builder
	testworld.Must(t, write(&plain, console.Style{}))
	testworld.Must(t, write(&terminal, console.Style{Width: 60, Colors: true}))
	testworld.Golden(t, *update, name, plain.String())
	testworld.Golden(t, *update, name+"-terminal", terminal.String())
}
