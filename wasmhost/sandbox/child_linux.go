package sandbox

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runChild runs cmd so that a Ctrl-C at the terminal is this process's to handle,
// and that the child ends when this process does.
func runChild(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// The death that Pdeathsig waits for is that of the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}
