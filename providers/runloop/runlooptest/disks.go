package runlooptest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// A snapshot is the home directory of a devbox as it was. Guarded by Server.mu.
type snapshot struct {
	id, name, source string
	metadata         map[string]string
	created, ready   time.Time
	deleted          bool
	machine          *machine.Machine
}

// A blueprint is one build. Guarded by Server.mu.
type blueprint struct {
	id, name string
	asked    map[string]any
	created  time.Time
	ready    time.Time
	fails    bool
}

func (s *Server) disks(mux, disks *http.ServeMux) {
	s.handle(mux, "snapshot", "POST /v1/devboxes/{id}/snapshot_disk_async", s.one(s.takeSnapshot))
	s.handle(mux, "snapshot", "POST /v1/devboxes/{id}/snapshot_disk", s.one(s.takeSnapshot))
	s.handle(disks, "snapshots", "GET /v1/devboxes/disk_snapshots", s.listSnapshots)
	s.handle(disks, "snapshot-status", "GET /v1/devboxes/disk_snapshots/{sid}/status", s.snapshotStatus)
	s.handle(disks, "snapshot-delete", "POST /v1/devboxes/disk_snapshots/{sid}/delete", s.deleteSnapshot)

	s.handle(mux, "blueprint-create", "POST /v1/blueprints", s.build)
	s.handle(mux, "blueprints", "GET /v1/blueprints", s.listBlueprints)
	s.handle(mux, "blueprint", "GET /v1/blueprints/{bid}", s.withBlueprint(func(w http.ResponseWriter, p *blueprint) { reply(w, s.showBlueprint(p)) }))
	s.handle(mux, "blueprint-logs", "GET /v1/blueprints/{bid}/logs", s.withBlueprint(func(w http.ResponseWriter, p *blueprint) {
		reply(w, map[string]any{"blueprint_id": p.id, "logs": []any{
			map[string]any{"level": "info", "message": "Step 1/1", "timestamp_ms": p.created.UnixMilli()},
			map[string]any{"level": "info", "message": "the build is " + s.progress(p), "timestamp_ms": p.created.UnixMilli()},
		}})
	}))
	s.handle(mux, "blueprint-delete", "POST /v1/blueprints/{bid}/delete", s.withBlueprint(func(w http.ResponseWriter, p *blueprint) {
		s.blueprints = slices.DeleteFunc(s.blueprints, func(x *blueprint) bool { return x == p })
		reply(w, map[string]any{})
	}))
}

// kept returns the snapshot with that id. The caller holds mu.
func (s *Server) kept(id string) *snapshot {
	for _, k := range s.snapshots {
		if k.id == id {
			return k
		}
	}
	return nil
}

func (k *snapshot) show() any {
	return map[string]any{
		"id": k.id, "name": k.name, "source_devbox_id": k.source, "metadata": k.metadata,
		"create_time_ms": k.created.UnixMilli(), "size_bytes": 0,
	}
}

// takeSnapshot keeps a copy of the home directory.
func (s *Server) takeSnapshot(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Name     string            `json:"name"`
		Metadata map[string]string `json:"metadata"`
	}
	if !read(w, r, &body) {
		return
	}
	if b.status != "running" && b.status != "suspended" {
		notRunning(w, b, b.status)
		return
	}
	key := "snapshot " + r.Header.Get("X-Request-Id")
	if k := s.kept(s.keys[key]); k != nil && !s.Behaviour().ForgetKeys {
		reply(w, k.show())
		return
	}
	m, err := machine.New("")
	if err == nil {
		err = copyHome(b.machine, m)
	}
	if err != nil {
		refuse(w, 500, err.Error())
		return
	}
	now := s.cfg.Now()
	if body.Metadata == nil {
		body.Metadata = map[string]string{}
	}
	k := &snapshot{
		id: s.number("snp_"), name: body.Name, source: b.id, metadata: body.Metadata,
		created: now, ready: now.Add(s.cfg.StopDelay), machine: m,
	}
	b.copying = k.ready
	s.snapshots = append(s.snapshots, k)
	s.keys[key] = k.id
	reply(w, k.show())
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*snapshot
	for _, k := range slices.Backward(s.snapshots) {
		if from := r.URL.Query().Get("devbox_id"); !k.deleted && (from == "" || from == k.source) {
			found = append(found, k)
		}
	}
	page(w, r, "snapshots", found, func(k *snapshot) string { return k.id }, (*snapshot).show)
}

func (s *Server) snapshotStatus(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept(r.PathValue("sid"))
	switch {
	case k == nil:
		refuse(w, 404, "Snapshot not found")
	case k.deleted:
		reply(w, map[string]any{"status": "deleted"})
	case s.cfg.Now().Before(k.ready):
		reply(w, map[string]any{"status": "in_progress"})
	default:
		reply(w, map[string]any{"status": "complete", "snapshot": k.show()})
	}
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept(r.PathValue("sid"))
	if k == nil {
		refuse(w, 404, "Snapshot not found")
		return
	}
	k.deleted = true
	reply(w, map[string]any{})
}

// progress is the state of a build. The caller holds mu.
func (s *Server) progress(p *blueprint) string {
	now := s.cfg.Now()
	switch {
	case now.Before(p.created.Add(p.ready.Sub(p.created) / 3)):
		return "queued"
	case now.Before(p.ready):
		return "building"
	case p.fails:
		return "failed"
	}
	return "build_complete"
}

func (s *Server) showBlueprint(p *blueprint) any {
	fields := map[string]any{
		"id": p.id, "name": p.name, "status": s.progress(p), "state": "created",
		"create_time_ms": p.created.UnixMilli(), "parameters": p.asked,
	}
	if s.progress(p) == "failed" {
		fields["failure_reason"] = "build_failed"
	}
	return fields
}

func (s *Server) build(w http.ResponseWriter, r *http.Request) {
	asked := map[string]any{}
	if !read(w, r, &asked) {
		return
	}
	name, _ := asked["name"].(string)
	if name == "" {
		refuse(w, 400, "name is required")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := "blueprint " + r.Header.Get("X-Request-Id")
	for _, p := range s.blueprints {
		if p.id == s.keys[key] && !s.Behaviour().ForgetKeys {
			reply(w, s.showBlueprint(p))
			return
		}
	}
	now := s.cfg.Now()
	p := &blueprint{id: s.number("bpt_"), name: name, asked: asked, created: now, ready: now.Add(s.cfg.StartDelay), fails: s.Behaviour().BuildFails}
	s.blueprints = append(s.blueprints, p)
	s.keys[key] = p.id
	reply(w, s.showBlueprint(p))
}

// listBlueprints finds more names than the one asked for.
func (s *Server) listBlueprints(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*blueprint
	for _, p := range slices.Backward(s.blueprints) {
		if status := r.URL.Query().Get("status"); strings.Contains(p.name, r.URL.Query().Get("name")) && (status == "" || status == s.progress(p)) {
			found = append(found, p)
		}
	}
	page(w, r, "blueprints", found, func(p *blueprint) string { return p.id }, s.showBlueprint)
}

// withBlueprint finds the blueprint of a request. f runs with mu held.
func (s *Server) withBlueprint(f func(http.ResponseWriter, *blueprint)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.blueprints {
			if p.id == r.PathValue("bid") {
				f(w, p)
				return
			}
		}
		refuse(w, 404, "Blueprint not found")
	}
}

func copyHome(from, to *machine.Machine) error {
	run, err := to.Start(machine.Process{Args: []string{"cp", "-a", from.Dir() + "/.", to.Dir()}})
	if err != nil {
		return err
	}
	if exit, err := run.Wait(); exit != 0 || err != nil {
		return fmt.Errorf("cp ended with %d (%v)", exit, err)
	}
	return nil
}
