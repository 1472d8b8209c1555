package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// builtModuleAge is how long the module of a folder is kept that nobody runs.
const builtModuleAge = 30 * 24 * time.Hour

// buildCached builds the Go main package in a folder and returns its module.
// The module stays in cacheDir under a name made of the folder's path. The go
// command sees by its build ID whether it is up to date, so a second run
// costs some 50 ms and no linking. With no cacheDir it is built anew.
func buildCached(ctx context.Context, folder, cacheDir string, stderr io.Writer, log *slog.Logger) ([]byte, error) {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if cacheDir == "" {
		temporary, err := os.MkdirTemp("", "quern-build-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(temporary)
		return buildAndRead(ctx, dir, folder, filepath.Join(temporary, "job.wasm"), stderr, log)
	}

	built := filepath.Join(cacheDir, "built")
	if err := os.MkdirAll(built, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for built jobs: %w", err)
	}
	sum := sha256.Sum256([]byte(dir))
	target := filepath.Join(built, hex.EncodeToString(sum[:12])+".wasm")
	// A handful of lock files serves all folders, so none has to be removed.
	unlock, err := lockedfile.MutexAt(filepath.Join(built, fmt.Sprintf("lock-%x", sum[0]%16))).Lock()
	if err != nil {
		return nil, fmt.Errorf("waiting for another build of %s: %w", folder, err)
	}
	defer unlock()
	wasm, err := buildAndRead(ctx, dir, folder, target, stderr, log)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := os.Chtimes(target, now, now); err != nil {
		return nil, err
	}
	removeOldBuilds(built, now.Add(-builtModuleAge))
	return wasm, nil
}

func buildAndRead(ctx context.Context, dir, shown, target string, stderr io.Writer, log *slog.Logger) ([]byte, error) {
	start := time.Now()
	before, _ := os.Stat(target) // nil if there is none
	if err := goBuild(ctx, dir, shown, target, stderr); err != nil {
		return nil, err
	}
	// The go command leaves a module alone that is up to date, and puts a new
	// file in the place of another.
	if after, err := os.Stat(target); err == nil {
		cached := before != nil && os.SameFile(before, after)
		log.Debug("job built", "folder", shown, "took", time.Since(start), "cached", cached)
	}
	return os.ReadFile(target)
}

// removeOldBuilds removes modules that were last used before a time. That it
// cannot is no reason not to run a job.
func removeOldBuilds(built string, before time.Time) {
	entries, err := os.ReadDir(built)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && strings.HasSuffix(entry.Name(), ".wasm") && info.ModTime().Before(before) {
			os.Remove(filepath.Join(built, entry.Name()))
		}
	}
}
