package session

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// WarmFor is how long the state after a setup script is used for later starts.
const WarmFor = 7 * 24 * time.Hour

// snapshotTimeout bounds what taking a snapshot may take.
const snapshotTimeout = 10 * time.Minute

// markFile says in a snapshot which one it is, so that no other is taken for it. It is
// in no session's way: it goes before the work begins.
const markFile = ".talkops-warm"

// Warm says that the state of the machine after the setup script is kept as a
// snapshot, from which an equal session starts without running the script. Only
// files are kept: what the script left running is not there the next time.
type Warm struct {
	Kept   Snapshots
	Secret []string // names in Spec.Env whose values must not be kept
}

// A Kept is a snapshot that is on record.
type Kept struct {
	Name     string           `json:"name"` // at the vendor
	Key      string           `json:"key"`  // what the setup depends on
	Provider string           `json:"provider"`
	Project  string           `json:"project"`
	PID      int              `json:"pid"`
	Host     string           `json:"host"`
	Created  time.Time        `json:"created"`
	Ready    bool             `json:"ready"`         // it can be started from
	Sent     []workspace.Sent `json:"sent,omitzero"` // what of the project is in it
}

// Snapshots is the directory that holds one file for each Kept, and a secret of this
// user that no other can compute a Key without.
type Snapshots struct{ Dir string }

func (w Snapshots) file(name string) string { return filepath.Join(w.Dir, name+".json") }

// Put writes a record, whole or not at all.
func (w Snapshots) Put(k Kept) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return replaceFile(w.file(k.Name), append(data, '\n'))
}

// Remove forgets a snapshot; one that is gone is no error.
func (w Snapshots) Remove(name string) error {
	if err := os.Remove(w.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List returns the records, newest first. What cannot be read is named in the error.
func (w Snapshots) List() ([]Kept, error) {
	entries, _ := os.ReadDir(w.Dir)
	var list []Kept
	var errs []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		name := filepath.Join(w.Dir, e.Name())
		data, err := os.ReadFile(name)
		var k Kept
		if err == nil {
			err = json.Unmarshal(data, &k)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("snapshot %s: %w", filepath.Base(name), err))
			continue
		}
		list = append(list, k)
	}
	slices.SortStableFunc(list, func(a, b Kept) int { return b.Created.Compare(a.Created) })
	return list, errors.Join(errs...)
}

// salt returns the secret, which it makes at the first time.
func (w Snapshots) salt() ([]byte, error) {
	name := filepath.Join(w.Dir, "salt")
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(w.Dir, 0o700); err != nil {
			return nil, err
		}
		data = make([]byte, 32)
		rand.Read(data)
		err = replaceFile(name, data)
	}
	if err == nil && len(data) != 32 {
		err = fmt.Errorf("%s is not as it was written; remove it", name)
	}
	return data, err
}

// key is what the state after the setup depends on: equal for an equal setup, and
// telling nothing of what went into it.
func (w Snapshots) key(opts Options, d sandbox.Description) (string, error) {
	salt, err := w.salt()
	if err != nil {
		return "", err
	}
	options, err := json.Marshal(opts.Spec.Options)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, salt)
	add := func(parts ...string) {
		for _, p := range parts {
			fmt.Fprintf(h, "%d:%s,", len(p), p)
		}
	}
	add("1", d.Name, opts.Spec.Image, opts.Spec.Snapshot, opts.Spec.Dir, string(options), opts.Root, string(opts.Setup), fmt.Sprint(opts.Plan != nil))
	for _, name := range slices.Sorted(maps.Keys(opts.Spec.Env)) {
		add(name, opts.Spec.Env[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// warmth finds out whether there is a snapshot to start from; nil: there is none. It
// also says whether one is to be kept.
func (s *Session) warmth(d sandbox.Description) (found *Kept, err error) {
	if s.opts.Warm == nil || !s.Fresh || len(s.opts.Setup) == 0 {
		return nil, nil
	}
	if _, can := sandbox.As[sandbox.SnapshotRemover](s.opts.Provider); !can {
		s.opts.Note("%s cannot keep the state after a setup script; the script runs each time", d.Title)
		return nil, nil
	}
	if s.key, err = s.opts.Warm.Kept.key(s.opts, d); err != nil {
		return nil, fmt.Errorf("look for the state after the setup: %w", err)
	}
	list, _ := s.opts.Warm.Kept.List()
	for _, k := range list {
		if k.Key == s.key && k.Ready && time.Since(k.Created) < WarmFor {
			return &k, nil
		}
	}
	return nil, nil
}

// startWarm opens a machine from a snapshot and brings its files up to the project.
// It reports whether that went well; if not, nothing of it is left, and only an error
// that a cold start would meet as well is returned.
func (s *Session) startWarm(ctx context.Context, k Kept) (bool, error) {
	cold := s.spec
	s.spec.Snapshot, s.spec.Image = k.Name, ""
	err := s.open(ctx)
	if err == nil {
		dir := s.Sandbox.Info().Dir
		if err = s.refill(ctx, dir, k); err == nil {
			s.opts.Note("started from the state that was kept after the setup, %s ago; the setup script does not run", time.Since(k.Created).Round(time.Second))
			return true, s.begun(ctx, dir)
		}
		err = s.fail(ctx, "start", err)
	}
	if start, ok := errors.AsType[*StartError](err); ok {
		err = start.Err
	}
	s.spec, s.Sandbox, s.lease = cold, nil, Lease{}
	if ctx.Err() != nil || errors.Is(err, sandbox.ErrUnauthenticated) || errors.Is(err, sandbox.ErrQuota) {
		return false, &StartError{Step: "start", Name: s.opts.Provider.Describe().Title, Err: err}
	}
	s.opts.Note("the state that was kept after the setup cannot be used: %v; starting anew", err)
	if !errors.Is(err, sandbox.ErrUnavailable) {
		s.forgetWarm(k)
	}
	return false, nil
}

// errNotIt means that a machine was opened from something else than was kept.
var errNotIt = errors.New("the snapshot is not the one that was kept")

// refill makes the files of the project in a machine those of this computer.
func (s *Session) refill(ctx context.Context, dir string, k Kept) error {
	var mark bytes.Buffer
	name := path.Join(dir, markFile)
	if err := s.Sandbox.ReadFile(ctx, name, &mark); errors.Is(err, fs.ErrNotExist) || err == nil && mark.String() != k.Name {
		return errNotIt
	} else if err != nil {
		return err
	}
	if err := s.unmark(ctx, name); err != nil || s.opts.Plan == nil {
		return err
	}
	keep, err := s.opts.Plan.Renew(ctx, s.Sandbox, dir, k.Sent)
	if err != nil {
		return err
	}
	return s.send(ctx, dir, func(name string) bool { return keep[name] })
}

func (s *Session) unmark(ctx context.Context, name string) error {
	exit, err := s.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"rm", "-f", "--", name}})
	if err != nil || exit != 0 {
		return unable("remove "+name, exit, err)
	}
	return nil
}

// keepWarm keeps the state after the setup. That it cannot is told and is no error,
// unless the machine is gone by it.
func (s *Session) keepWarm(ctx context.Context, dir string) error {
	if s.key == "" {
		return nil
	}
	d := s.opts.Provider.Describe()
	if _, can := sandbox.As[sandbox.Snapshotter](s.Sandbox); !can {
		s.opts.Note("%s cannot keep the state after a setup script; the script runs each time", d.Title)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if name, where, err := s.holding(ctx, dir); err != nil || name != "" {
		if err == nil {
			err = fmt.Errorf("%s holds the value of %s", where, name)
		}
		s.opts.Note("the state after the setup is not kept: %v", err)
		return nil
	}
	k := Kept{
		Name: s.spec.Name, Key: s.key, Provider: d.Name, Project: s.opts.Root, PID: os.Getpid(),
		Created: time.Now().UTC().Truncate(time.Second), Sent: s.opts.Plan.Sent(),
	}
	k.Host, _ = os.Hostname()
	mark := path.Join(dir, markFile)
	began := time.Now()
	// On record before it is there, so that no crash leaves one nobody knows of.
	err := s.opts.Warm.Kept.Put(k)
	if err == nil {
		err = s.Sandbox.WriteFile(ctx, mark, strings.NewReader(k.Name), 0o600)
	}
	if err == nil {
		if err = sandbox.Snapshot(ctx, s.Sandbox, k.Name); err == nil {
			k.Ready = true
			err = s.opts.Warm.Kept.Put(k)
		}
	}
	if err != nil {
		s.forgetWarm(k)
	}
	if gone := errors.Is(err, sandbox.ErrGone); gone {
		return fmt.Errorf("keep the state after the setup: %w", err)
	}
	if uerr := s.unmark(ctx, mark); uerr != nil {
		return uerr
	}
	if err != nil {
		s.opts.Note("the state after the setup is not kept: %v", err)
		return nil
	}
	s.opts.Note("the state after the setup is kept as snapshot %s for later starts (%s)", k.Name, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// forgetWarm removes a snapshot. One that cannot be stays on record, for prune.
func (s *Session) forgetWarm(k Kept) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	k.Ready = false
	if s.opts.Warm.Kept.Put(k) == nil {
		EndSnapshot(ctx, s.opts.Provider, k, s.spec.Settings, s.opts.Warm.Kept)
	}
}

// EndSnapshot removes a snapshot at the vendor and forgets it.
func EndSnapshot(ctx context.Context, p sandbox.Provider, k Kept, settings map[string]string, kept Snapshots) error {
	if err := sandbox.RemoveSnapshot(ctx, p, sandbox.Spec{Snapshot: k.Name, Settings: settings}); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return err
	}
	return kept.Remove(k.Name)
}

// findSecrets prints the first variable of $2 whose value, plain or in base64, stands
// in a file that a script may have written in the last $3 minutes, and that file. The
// values are the sandbox's own: nothing of them is sent. In base64 a value looks in one of
// three ways, by how many bytes stand before it, such as a name and a colon; what follows
// decides about its end; and a line may end in it, after 64 characters or 76, so that one
// of two parts is enough.
const findSecrets = `names=$2; since="-cmin -$3"; set -- "$1"
find / -maxdepth 0 $since >/dev/null 2>&1 || since=
for d in "$HOME" /root /tmp /var /etc /opt /srv /usr/local; do [ -d "$d" ] && set -- "$@" "$d"; done
coded() { printf %s%s "$1" "$3" | base64 2>/dev/null | tr -d '\n' | sed 's/.==*$//' | cut -c "$2-"; }
command -v grep >/dev/null && command -v printenv >/dev/null || exit 90
for n in $names; do
	v=$(printenv "$n") || continue
	long=$(printf '%s\n' "$v" | { m=; while IFS= read -r l; do [ "${#l}" -gt "${#m}" ] && m=$l; done; printf %s "$m"; })
	for form in plain 0 1 2; do
		case $form in
		plain) p=$long ;;
		0) p=$(coded "" 1 "$v") ;;
		1) p=$(coded 0 3 "$v") ;;
		2) p=$(coded 00 4 "$v") ;;
		esac
		q=$p
		if [ $form != plain ] && [ "${#p}" -ge 24 ]; then
			half=$((${#p} / 2))
			[ $half -le 30 ] || half=30
			q=$(printf %s "$p" | cut -c "$((half + 1))-$((2 * half))")
			p=$(printf %s "$p" | cut -c "1-$half")
		fi
		[ "${#p}" -ge 6 ] || continue
		f=$(find "$@" -type f $since -exec grep -lsF -e "$p" -e "$q" -- {} + 2>/dev/null </dev/null | head -n 1)
		[ -z "$f" ] || { printf '%s\n%s\n' "$n" "$f"; exit 0; }
	done
done`

// holding looks in the sandbox for values of secret variables in files. What a script
// made unrecognisable, by encrypting or packing it, is not found.
func (s *Session) holding(ctx context.Context, dir string) (name, where string, err error) {
	if len(s.opts.Warm.Secret) == 0 {
		return "", "", nil
	}
	var out bytes.Buffer
	minutes := int(time.Since(s.lease.Created)/time.Minute) + 2
	exit, err := s.Sandbox.Exec(ctx, sandbox.Cmd{
		Args: []string{"/bin/sh", "-c", findSecrets, "sh", dir, strings.Join(s.opts.Warm.Secret, " "), fmt.Sprint(minutes)}, Dir: dir, Stdout: &out, Stderr: io.Discard,
	})
	if err != nil || exit != 0 {
		return "", "", unable("look for secrets in it", exit, err)
	}
	name, where, _ = strings.Cut(strings.TrimSuffix(out.String(), "\n"), "\n")
	return name, where, nil
}
