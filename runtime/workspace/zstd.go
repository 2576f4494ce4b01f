package workspace

import (
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// zstandard is how archives travel where the sandbox has zstd. Its windows are
// small enough for the memory that a transfer may take.
func zstandard() sandbox.Codec {
	return sandbox.Codec{
		Program: "zstd", Magic: "\x28\xb5\x2f\xfd",
		Writer: func(w io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20))
		},
		Reader: func(r io.Reader) (io.ReadCloser, error) {
			zr, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
			if err != nil {
				return nil, err
			}
			return zr.IOReadCloser(), nil
		},
	}
}

// codecs are what a part of a file may travel by.
func codecs() []sandbox.Codec {
	gz := sandbox.Codec{Program: "gzip", Reader: func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }}
	return []sandbox.Codec{zstandard(), gz}
}
