package workspace

import "io/fs"

// stored is how many bytes of disk a file takes; -1 if that is not known.
func stored(fs.FileInfo) int64 { return -1 }
