package workspace

import "os"

// readable reports whether we may read a file.
func readable(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
