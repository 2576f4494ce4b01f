package machine

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A stat is what /proc tells of a process.
type stat struct {
	pid, parent, group int
	dead               bool
}

func processes() []stat {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []stat
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) < 3 {
			continue
		}
		s := stat{pid: pid, dead: fields[0] == "Z" || fields[0] == "X"}
		s.parent, _ = strconv.Atoi(fields[1])
		s.group, _ = strconv.Atoi(fields[2])
		all = append(all, s)
	}
	return all
}

// family returns the members of the group and all descendants of its leader.
func family(leader int) []int {
	all := processes()
	var pids []int
	for found := true; found; {
		found = false
		for _, s := range all {
			if slices.Contains(pids, s.pid) || s.dead {
				continue
			}
			if s.pid == leader || s.group == leader || slices.Contains(pids, s.parent) {
				pids = append(pids, s.pid)
				found = true
			}
		}
	}
	return pids
}

// alive reports whether any of the group or of pids still runs.
func alive(group int, pids []int) bool {
	for _, s := range processes() {
		if !s.dead && (s.group == group || slices.Contains(pids, s.pid)) {
			return true
		}
	}
	return false
}

// killStrays ends processes that left their group but kept the environment.
func killStrays(mark string) {
	for range 3 {
		for _, s := range processes() {
			env, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/environ")
			if err == nil && !s.dead && slices.Contains(strings.Split(string(env), "\x00"), mark) {
				syscall.Kill(s.pid, syscall.SIGKILL)
			}
		}
	}
}
