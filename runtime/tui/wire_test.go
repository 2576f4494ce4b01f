package tui

import (
	"fmt"
	"reflect"

	tea "charm.land/bubbletea/v2"
)

// The library's messages for printing and for sequences are its own; the tests
// know them by their shape.

func sequence(msg tea.Msg) ([]tea.Cmd, bool) {
	v := reflect.ValueOf(msg)
	if v.Kind() != reflect.Slice || fmt.Sprintf("%T", msg) != "tea.sequenceMsg" {
		return nil, false
	}
	var cmds []tea.Cmd
	for i := range v.Len() {
		cmds = append(cmds, v.Index(i).Interface().(tea.Cmd))
	}
	return cmds, true
}

func printed(msg tea.Msg) (string, bool) {
	v := reflect.ValueOf(msg)
	if fmt.Sprintf("%T", msg) != "tea.printLineMessage" {
		return "", false
	}
	return v.Field(0).String(), true
}
