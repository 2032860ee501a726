//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package npm

import "context"

// lock does nothing where the standard library has no file locks: two
// processes may then install at once, and the first to finish wins.
func lock(context.Context, string) (unlock func(), err error) {
	return func() {}, nil
}
