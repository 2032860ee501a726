package cosmosfake_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/interop"
	"github.com/feedscale/feedscale/pkg/emulator/npm"
)

func TestTheJavaScriptSDKCannotTellTheDifference(t *testing.T) {
	t.Parallel()
	folder, err := npm.InstallFolder(t.Context(), "cosmos-js", filepath.Join("testdata", "js"))
	if err != nil {
		t.Fatal(err)
	}
	account, err := cosmosfake.Start(cosmosfake.Options{VersionRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = account.Close() }()
	if err := interop.Conduct(t.Context(), account, nil, t.Output(), nil, "node", filepath.Join(folder, "client.mjs")); err != nil {
		t.Fatal(err)
	}
}
