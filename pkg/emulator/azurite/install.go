package azurite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "embed" // for the files of npm/
)

// Version is the version of Azurite that is installed. It is the last one that
// runs on Node.js 20.
const Version = "3.35.0"

//go:embed npm/package.json
var packageJSON []byte

//go:embed npm/package-lock.json
var packageLock []byte

// Install makes sure that Azurite is installed in the user's cache directory,
// and returns the folder that holds its node_modules. It downloads only where
// the folder is missing. Several processes may call it at once: one installs,
// the others wait for it.
func Install(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder to install Azurite in: %w", err)
	}
	root := filepath.Join(cache, "feedscale")
	dir := filepath.Join(root, "azurite-"+Version)
	if installed(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return "", fmt.Errorf("create a folder to install Azurite in: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("wait for another installation of Azurite: %w", err)
	}
	defer unlock()
	if installed(dir) {
		return dir, nil
	}
	if err := download(ctx, root, dir); err != nil {
		return "", fmt.Errorf("install Azurite %s: %w", Version, err)
	}
	return dir, nil
}

func installed(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// download installs beside dir and renames, so that dir is either whole or not
// there, also where the lock does not work.
func download(ctx context.Context, root, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm was not found: install Node.js 20 or newer, with npm, and put it on the PATH")
	}
	partial, err := os.MkdirTemp(root, "partial-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }() // what is left over is in a cache
	if err := os.WriteFile(filepath.Join(partial, "package.json"), packageJSON, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(partial, "package-lock.json"), packageLock, 0o600); err != nil {
		return err
	}

	var output bytes.Buffer
	ci := exec.CommandContext(ctx, npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
	ci.Dir = partial
	ci.Stdout, ci.Stderr = &output, &output
	ci.WaitDelay = time.Second // npm's own children may hold the pipes open
	if err := ci.Run(); err != nil {
		return fmt.Errorf("npm ci (is the npm registry reachable?): %w\n%s", err, strings.TrimSpace(output.String()))
	}
	if err := os.Rename(partial, dir); err != nil && !installed(dir) {
		return err
	}
	return nil
}
