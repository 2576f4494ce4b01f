package emulate

import (
	"net"
	"sync"
)

// A network lies between a service and its clients. Its zero value is whole.
type network struct {
	mu      sync.Mutex
	whole   *sync.Cond
	down    bool
	refuses bool
	lines   map[*line]bool
}

// Wire returns l with the network of the service before it, which Unplug takes away.
func (l *Log) Wire(listener net.Listener) net.Listener {
	l.net.whole = sync.NewCond(&l.net.mu)
	l.net.lines = map[*line]bool{}
	return &wired{listener, &l.net}
}

// Unplug takes the network away: nothing arrives any more, in either direction, and
// nobody is told. If it refuses, connections break, and new ones too.
func (l *Log) Unplug(refuses bool) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.down, l.net.refuses = true, refuses
	if refuses {
		for c := range l.net.lines {
			c.reset()
		}
		if l.net.whole != nil {
			l.net.whole.Broadcast()
		}
	}
}

// Plug brings the network back, and with it what was on its way.
func (l *Log) Plug() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.down, l.net.refuses = false, false
	if l.net.whole != nil {
		l.net.whole.Broadcast()
	}
}

type wired struct {
	net.Listener
	net *network
}

func (w *wired) Accept() (net.Conn, error) {
	for {
		c, err := w.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l := &line{Conn: c, net: w.net}
		w.net.mu.Lock()
		if w.net.refuses {
			l.reset()
			w.net.mu.Unlock()
			continue
		}
		w.net.lines[l] = true
		w.net.mu.Unlock()
		return l, nil
	}
}

// A line is one connection.
type line struct {
	net.Conn
	net    *network
	closed bool
}

// reset breaks the line. The caller holds the network's lock.
func (l *line) reset() {
	if tcp, ok := l.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	l.closed = true
	delete(l.net.lines, l)
	l.Conn.Close()
}

// wait returns when the network is whole or the line is closed.
func (l *line) wait() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for l.net.down && !l.closed {
		l.net.whole.Wait()
	}
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.wait()
	return n, err
}

func (l *line) Write(p []byte) (int, error) {
	l.wait()
	return l.Conn.Write(p)
}

func (l *line) Close() error {
	l.net.mu.Lock()
	l.closed = true
	delete(l.net.lines, l)
	l.net.whole.Broadcast()
	l.net.mu.Unlock()
	return l.Conn.Close()
}
