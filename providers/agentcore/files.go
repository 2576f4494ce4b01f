package agentcore

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/providers/internal/posix"
	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// readScript prints the size of the file $1 and the bytes of a small one as base64.
// The first piece of a larger one goes to the file $2.0 instead.
const readScript = `s=$( (` + posix.StatScript + `) ) || { e=$?; printf %s "$s"; exit $e; }
echo "$s"
if [ "$s" -le ` + shownText + ` ]; then
	head -c ` + shownText + ` "$1" | base64 | tr -d '\n'
else
	umask 077
	head -c ` + pieceText + ` "$1" | base64 >"$2.0"
fi`

// pieceScript puts the piece of the file $1 that begins at $3 into the file $2.$3.
const pieceScript = `umask 077
rm -f "$2".[0-9]*
tail -c "+$(($3+1))" "$1" | head -c ` + pieceText + ` | base64 >"$2.$3"`

// ReadFile copies the file name to w.
func (b *box) ReadFile(ctx context.Context, name string, w io.Writer) error {
	op := "read " + name
	if err := posix.CheckPath(op, name); err != nil {
		return err
	}
	base := path.Join(b.run, rest.Random())
	out, exit, err := b.shell(ctx, b.calls, rest.Always, readScript, name, base)
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit != 0 {
		return posix.FileError(op, exit, out)
	}
	first, content, _ := strings.Cut(out, "\n")
	size, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil {
		return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "its size cannot be read"}
	}
	switch {
	case size == 0:
		// It may be one of those the kernel fills while they are read.
		exit, err := b.Exec(ctx, sandbox.Cmd{Args: []string{"cat", name}, Dir: "/", Stdout: w})
		if err == nil && exit != 0 {
			err = &sandbox.Error{Code: sandbox.CodeInternal, Msg: fmt.Sprintf("cat ended with %d", exit)}
		}
		return posix.InOp(op, err)
	case size <= shownMost:
		data, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "its content cannot be read"}
		}
		_, err = w.Write(data)
		return err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		b.shell(clean, nil, rest.Always, `rm -f "$1".[0-9]*`, base)
	}()
	for have := int64(0); have < size; {
		at := strconv.FormatInt(have, 10)
		if have > 0 {
			out, exit, err := b.shell(ctx, b.calls, rest.Always, pieceScript, name, base, at)
			if err != nil {
				return posix.InOp(op, err)
			}
			if exit != 0 {
				return posix.FileError(op, exit, out)
			}
		}
		pieces, err := b.readBack(ctx, base+"."+at)
		if err != nil {
			return posix.InOp(op, err)
		}
		piece := pieces[0]
		if want := min(size-have, pieceMost); int64(len(piece)) < want {
			return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("only %d of %d bytes arrived", have+int64(len(piece)), size)}
		} else if _, err := w.Write(piece[:want]); err != nil {
			return err
		}
		have += min(size-have, pieceMost)
	}
	return nil
}

// readBack returns what the named private files hold in base64.
func (b *box) readBack(ctx context.Context, names ...string) ([][]byte, error) {
	const op = "read files"
	if err := turn(ctx, b.calls, op); err != nil {
		return nil, err
	}
	defer func() { <-b.calls }()
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = b.relative(name)
	}
	res, err := b.api.invoke(ctx, call{
		op: op, session: b.id, tool: "readFiles", retry: rest.Always, within: moveWithin,
		arguments: map[string]any{"paths": paths},
	})
	if err != nil {
		return nil, b.explain(ctx, err)
	}
	if res.Error || len(res.Content) != len(names) {
		return nil, &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: "AgentCore: " + b.api.Show(res.text())}
	}
	contents := make([][]byte, len(names))
	for i, c := range res.Content {
		text := c.Resource.Text
		if text == "" {
			text = string(c.Resource.Blob)
		}
		if contents[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "a file came back changed"}
		}
	}
	return contents, nil
}

// relative is the name of a private file as file calls know it.
func (b *box) relative(name string) string { return path.Join(path.Base(b.run), path.Base(name)) }

// moveScript joins the $4 parts $1.0 … to the file $1 and moves that to $2, as
// posix.WriteScript does. The parts may be someone else's, the joined file is not.
const moveScript = `( umask 077; : >"$1" ) || exit 1
i=0
while [ $i -lt "$4" ]; do
	cat "$1.$i" >>"$1" && rm -f "$1.$i" || exit 1
	i=$((i+1))
done
` + posix.WriteScript

// WriteFile makes the file name hold what r gives: it is uploaded in parts to the
// private directory, and one script joins them and moves the whole into place.
func (b *box) WriteFile(ctx context.Context, name string, r io.Reader, perm fs.FileMode) error {
	op := "write " + name
	if err := posix.CheckTarget(op, name); err != nil {
		return err
	}
	base := path.Join(b.run, rest.Random())
	moved := false
	defer func() {
		if !moved {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			b.shell(clean, nil, rest.Always, `rm -f "$1" "$1".[0-9]*`, base)
		}
	}()
	parts, err := b.upload(ctx, base+".", true, r)
	if err != nil {
		return posix.InOp(op, err)
	}
	out, exit, err := b.shell(ctx, b.calls, rest.Refused, moveScript, base, name, fmt.Sprintf("%o", perm.Perm()), strconv.Itoa(parts))
	if err != nil {
		return posix.InOp(op, err)
	}
	if exit != 0 {
		return posix.WriteError(op, exit, out)
	}
	moved = true
	return nil
}

// unpackScript extracts the $3 parts $1.0 … of a compressed archive below $2.
const unpackScript = `mkdir -p -- "$2" && cd -- "$2" || exit 1
i=0
while [ $i -lt "$3" ]; do cat "$1.$i" || exit 1; i=$((i+1)); done | gzip -dc | tar -xpof -`

// Unpack extracts the tar stream r below dir with one script, where other
// providers need a few commands.
func (b *box) Unpack(ctx context.Context, dir string, r io.Reader) error {
	if !b.tar {
		return sandbox.Unpack(ctx, struct{ sandbox.Sandbox }{b}, dir, r)
	}
	op := "unpack to " + dir
	if err := posix.CheckPath(op, dir); err != nil {
		return err
	}
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		zw, _ := gzip.NewWriterLevel(pw, gzip.BestSpeed)
		_, err := io.Copy(zw, r)
		if err == nil {
			err = zw.Close()
		}
		pw.CloseWithError(err)
	}()
	j := &job{box: b, id: rest.Random()}
	parts, err := b.upload(ctx, j.base()+".", true, pr)
	pr.CloseWithError(errors.New("the upload has ended"))
	<-done
	out, exit := "", 0
	if err == nil {
		out, exit, err = b.shell(ctx, b.calls, rest.Always, unpackScript, j.base(), dir, strconv.Itoa(parts))
	}
	j.discard(ctx, parts != 1)
	switch {
	case err != nil:
		return posix.InOp(op, err)
	case exit != 0:
		return posix.FileError(op, exit, out)
	}
	return nil
}

// upload sends r to the private file name, or in parts to name0, name1 and so on.
// It returns how many there are, at least one.
func (b *box) upload(ctx context.Context, name string, parted bool, r io.Reader) (parts int, err error) {
	source := &rest.Source{R: r}
	type piece struct {
		data []byte
		last bool
	}
	for {
		next := make(chan piece, 1)
		go func() {
			data, err := io.ReadAll(io.LimitReader(source, pieceMost))
			next <- piece{data, err != nil || len(data) < pieceMost}
		}()
		var p piece
		select {
		case p = <-next:
		case <-ctx.Done():
			// A reader that stands still, such as a terminal, is left behind.
			return 0, rest.Ended(ctx, "upload")
		}
		if source.Err != nil {
			return 0, fmt.Errorf("upload: %w", source.Err)
		}
		to := name
		if parted {
			to += strconv.Itoa(parts)
		}
		if parts == 0 || len(p.data) > 0 {
			if err := b.send(ctx, to, p.data); err != nil {
				return 0, err
			}
			parts++
		}
		if p.last {
			return parts, nil
		}
	}
}

// send writes one private file.
func (b *box) send(ctx context.Context, name string, data []byte) error {
	const op = "upload"
	for try := 1; ; try++ {
		if err := turn(ctx, b.calls, op); err != nil {
			return err
		}
		file := map[string]any{"path": b.relative(name), "blob": data}
		if len(data) == 0 {
			file = map[string]any{"path": b.relative(name), "text": ""}
		}
		res, err := b.api.invoke(ctx, call{
			op: op, session: b.id, tool: "writeFiles", retry: rest.Always, within: moveWithin,
			arguments: map[string]any{"content": []any{file}},
		})
		<-b.calls
		switch {
		case err != nil:
			return b.explain(ctx, err)
		case !res.Error:
			return nil
		case strings.Contains(strings.ToLower(res.text()), "no space"):
			return &sandbox.Error{Code: sandbox.CodeNoSpace, Op: op}
		case try == 2:
			return &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "AgentCore: " + b.api.Show(res.text())}
		}
		// The private directory may have been deleted.
		if _, _, err := b.shell(ctx, b.calls, rest.Always, `mkdir -p -m 700 "$1"`, b.run); err != nil {
			return err
		}
	}
}
