package tui

import (
	tea "charm.land/bubbletea/v2"
)

// The ways in which a window that nobody looks at calls.
const (
	NotifyOff    = "off"
	NotifyBell   = "bell"
	NotifyOSC9   = "osc9"   // iTerm2, kitty, WezTerm, Ghostty, Windows Terminal
	NotifyOSC777 = "osc777" // rxvt, foot, VTE
	NotifyAuto   = "auto"   // as the terminal that is running takes it, else the bell
)

// Notice chooses what a terminal takes, by its variables.
func Notice(want string, getenv func(string) string) string {
	if want != NotifyAuto {
		return want
	}
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "ghostty", "kitty":
		return NotifyOSC9
	}
	switch term := getenv("TERM"); {
	case getenv("TMUX") != "", getenv("STY") != "":
		return NotifyBell // what stands between does not hand the others on
	case term == "xterm-kitty", term == "xterm-ghostty", getenv("WT_SESSION") != "":
		return NotifyOSC9
	case term == "foot", term == "rxvt-unicode-256color", getenv("VTE_VERSION") != "":
		return NotifyOSC777
	}
	return NotifyBell
}

// notice is what is written to the terminal. event is a phrase of our own.
func notice(how, event string) string {
	switch how {
	case NotifyBell:
		return "\a"
	case NotifyOSC9:
		return "\x1b]9;talkops " + event + "\a"
	case NotifyOSC777:
		return "\x1b]777;notify;talkops;talkops " + event + "\a"
	}
	return ""
}

// notify calls the user, unless the window has their attention.
func (v *view) notify(event string) tea.Cmd {
	text := notice(v.window.Notify, event)
	if text == "" || !v.away {
		return nil
	}
	return tea.Raw(text)
}
