//go:build !linux

package sandbox

import "os/exec"

func runChild(cmd *exec.Cmd) error { return cmd.Run() }
