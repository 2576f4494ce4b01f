package rest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// An Event is one server-sent event.
type Event struct {
	Name string // its type; empty is "message"
	Data []byte // its data lines, joined by newlines
}

// Events reads server-sent events, as text/event-stream defines them. Lines may
// be of any length up to a bound; comments are left out.
type Events struct {
	r *bufio.Reader
}

// NewEvents reads events from r.
func NewEvents(r io.Reader) *Events { return &Events{bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next event that has data. At the end of the stream the error
// is io.EOF; an event that is not complete by then is lost, as it must be.
func (e *Events) Next() (Event, error) {
	var event Event
	for {
		line, err := e.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if event.Data != nil {
				return event, nil
			}
			event = Event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			event.Name = string(value)
		case "data":
			if event.Data != nil {
				event.Data = append(event.Data, '\n')
			} else {
				event.Data = []byte{}
			}
			event.Data = append(event.Data, value...)
			if len(event.Data) > mostEvent {
				return Event{}, errEvent
			}
		}
	}
}

const mostEvent = 64 << 20

var errEvent = errors.New("an event is too large")

// line returns one line without its end, which is "\n" or "\r\n".
func (e *Events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		case err != bufio.ErrBufferFull:
			if err == io.EOF && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		case len(line) > mostEvent:
			return nil, errEvent
		}
	}
}
