package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/sdk/abi"
)

func versionCommand() command {
	return command{
		name:  "version",
		short: "print the versions of quern, of its ABI and of what it is built with",
		setup: func(*pflag.FlagSet) action {
			return func(_ context.Context, c *console, args []string) error {
				if len(args) > 0 {
					return usagef("takes no arguments, has %d", len(args))
				}
				fmt.Fprintf(c.out, "quern %s\nabi %d\ngo %s %s/%s\n",
					quernVersion(), abi.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				if v := moduleVersion("github.com/tetratelabs/wazero"); v != "" {
					fmt.Fprintf(c.out, "wazero %s\n", v)
				}
				return nil
			}
		},
	}
}

// quernVersion is the version that the go command stamped into the binary,
// with the commit where it knows no better.
func quernVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return fmt.Sprintf("(devel) %.12s", s.Value)
		}
	}
	return "(devel)"
}

// moduleVersion is the version of a module that the binary is built from.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return ""
}
