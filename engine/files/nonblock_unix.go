//go:build unix

package files

import "syscall"

// nonblock keeps the opening of a pipe in the place of a file from waiting for
// somebody who writes to it.
const nonblock = syscall.O_NONBLOCK
