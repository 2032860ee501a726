// Package npm installs packages of the npm registry for Node.js programs that a Go program runs:
// outside the source tree, by a lock file, and only once.
//
// The package is internal to the program: its API may change in any release.
package npm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Files are the contents of files by their names: package.json,
// package-lock.json, and the scripts that want the packages.
type Files map[string][]byte

// Install makes sure that a folder of that name is in feedscale's part of the user's cache
// directory, with the files and the node_modules they ask for, and returns where. It downloads only
// if the folder is missing, so that the name has to tell what is in it. Several processes may call
// it at once: one installs, the others wait for it.
func Install(ctx context.Context, name string, files Files) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder to install in: %w", err)
	}
	root := filepath.Join(cache, "feedscale")
	dir := filepath.Join(root, name)
	if installed(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o750); err != nil {
		return "", fmt.Errorf("create a folder to install in: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("wait for another installation: %w", err)
	}
	defer unlock()
	if installed(dir) {
		return dir, nil
	}
	if err := download(ctx, root, dir, files); err != nil {
		return "", err
	}
	return dir, nil
}

// InstallFolder does the same for the files of a folder. The name is made to
// tell their content.
func InstallFolder(ctx context.Context, name, folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	files, hash := make(Files, len(entries)), sha256.New()
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return "", err
		}
		files[e.Name()] = content
		fmt.Fprintf(hash, "%s %d\n%s", e.Name(), len(content), content)
	}
	return Install(ctx, name+"-"+hex.EncodeToString(hash.Sum(nil)[:8]), files)
}

func installed(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// download installs beside dir and renames, so that dir is either whole or not
// there, also where the lock does not work.
func download(ctx context.Context, root, dir string, files Files) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm was not found: install Node.js 20 or newer, with npm, and put it on the PATH")
	}
	partial, err := os.MkdirTemp(root, "partial-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }() // what is left over is in a cache
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(partial, name), content, 0o600); err != nil {
			return err
		}
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
