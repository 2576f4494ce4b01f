package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/term"
)

// configEditCommand edits a copy of the user's file, which takes the file's place
// once it is valid.
func (a *app) configEditCommand() *cobra.Command {
	return &cobra.Command{
		Use: "edit", Short: "Open your own file in your editor", Args: usage(cobra.NoArgs),
		Long: `Edit opens a copy of your own file in $VISUAL, $EDITOR or vi. The copy takes the file's
place when you leave the editor, if it is valid; if not, you can go on editing or go back.`,
		Example: "  EDITOR=nano talkops config edit",
		RunE: func(c *cobra.Command, _ []string) error {
			file := a.userFile()
			before, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := os.MkdirAll(a.home, 0o700); err != nil {
				return err
			}
			copied, err := os.CreateTemp(a.home, "config-edit-*.toml")
			if err != nil {
				return err
			}
			name := copied.Name()
			_, err = copied.Write(before)
			if err := errors.Join(err, copied.Close()); err != nil {
				return err
			}
			for {
				if err := a.runEditor(name); err != nil {
					os.Remove(name)
					return fmt.Errorf("%w; your file is unchanged", err)
				}
				after, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				if err := config.Check(file, after); err != nil {
					again, aerr := a.editAgain(c, err)
					if aerr != nil {
						return &config.Error{Text: fmt.Sprintf("%v. Your file is unchanged; what you wrote is in %s", err, name)}
					}
					if again {
						continue
					}
					os.Remove(name)
					fmt.Fprintln(a.streams.Err, "Your file is as it was.")
					return nil
				}
				if string(after) == string(before) {
					os.Remove(name)
					fmt.Fprintln(a.streams.Err, "Nothing was changed.")
					return nil
				}
				if err := config.Replace(file, before, after); err != nil {
					return fmt.Errorf("%s: %w. It is unchanged; what you wrote is in %s", file, err, name)
				}
				os.Remove(name)
				fmt.Fprintln(a.streams.Err, "Saved. The next session will use it; one that runs stays as it is.")
				if _, err := a.load(nil, config.Untrusted); err != nil {
					fmt.Fprintf(a.streams.Err, "But the next session cannot start: %s\n", term.Clean(err.Error()))
				}
				return nil
			}
		},
	}
}

// editAgain asks what to do about a file that is not valid. The error is that
// nobody can be asked.
func (a *app) editAgain(c *cobra.Command, problem error) (bool, error) {
	if !a.streams.InTTY {
		return false, problem
	}
	fmt.Fprintln(a.streams.Err, term.Clean(problem.Error()))
	answer, err := a.ask(c.Context(), "Edit again, or go back to the file as it was? [E/b] ")
	if err != nil {
		return false, err
	}
	return answer != "b" && answer != "back", nil
}

// editor is the user's editor, with its arguments.
func (a *app) editor() []string {
	for _, v := range []string{"VISUAL", "EDITOR"} {
		if text, _ := a.env(v); len(strings.Fields(text)) > 0 {
			return strings.Fields(text)
		}
	}
	return []string{"vi"}
}

// runEditor opens a file in the user's editor and waits for its end.
func (a *app) runEditor(name string) error {
	words := a.editor()
	cmd := exec.Command(words[0], append(words[1:], name)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.streams.In, a.streams.Out, a.streams.Raw()
	if g, ok := a.streams.Out.(*guardedOut); ok {
		cmd.Stdout = io.Writer(g.w) // an editor wants the terminal itself
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %s: %w", words[0], err)
	}
	return nil
}
