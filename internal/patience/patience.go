// Package patience lets a test wait for what it cannot be told of, such as the
// end of a process of somebody else. It is the only place where tests sleep
// (internal/houserules): everywhere else they wait for an event or use an
// injected clock.
package patience

import (
	"testing"
	"time"
)

// limit is after how long a test gives up. It is far beyond what anything takes
// on a machine that is busy with other work, so only a wait in vain reaches it.
const limit = 2 * time.Minute

// Until returns when condition holds, and fails the test if it does not hold for
// two minutes. what completes the sentence "waited in vain until ...". The
// condition is called repeatedly, on the caller's goroutine.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	pause := 100 * time.Microsecond
	for deadline := time.Now().Add(limit); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %v until %s", limit, what)
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
}

// Receive returns the next value of a channel, and fails the test if none comes
// within two minutes. what completes the sentence "waited in vain for ...".
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case v := <-from:
		return v
	case <-timeout.C:
		t.Fatalf("waited in vain for %v for %s", limit, what)
		panic("unreachable")
	}
}
