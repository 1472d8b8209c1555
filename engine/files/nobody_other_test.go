//go:build !linux

package files

import "testing"

// asNobody runs f. Root, who may read everything, has to run these tests on
// Linux.
func asNobody(_ *testing.T, _ string, f func()) { f() }
