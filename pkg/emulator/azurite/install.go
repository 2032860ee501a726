package azurite

import (
	"context"
	"fmt"

	_ "embed" // for the files of npm/

	"github.com/feedscale/feedscale/pkg/emulator/npm"
)

// Version is the version of Azurite that is installed. It is the last one that
// runs on Node.js 20.
const Version = "3.35.0"

//go:embed npm/package.json
var packageJSON []byte

//go:embed npm/package-lock.json
var packageLock []byte

// Install makes sure that Azurite is installed in the user's cache directory, and returns the
// folder that holds its node_modules. It downloads only if the folder is missing. Several processes
// may call it at once: one installs, the others wait for it.
func Install(ctx context.Context) (string, error) {
	dir, err := npm.Install(ctx, "azurite-"+Version, npm.Files{"package.json": packageJSON, "package-lock.json": packageLock})
	if err != nil {
		return "", fmt.Errorf("install Azurite %s: %w", Version, err)
	}
	return dir, nil
}
