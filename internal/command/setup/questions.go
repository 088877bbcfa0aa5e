// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"charm.land/huh/v2"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/provider"
)

// ErrAborted is the error of a person who does not want to answer.
var ErrAborted = errors.New("nothing was written")

// option is a possible answer to a question.
type option struct{ label, value string }

// asker asks a person at a terminal.
type asker interface {
	// choose returns the value of one option; preset is the value of the default.
	choose(ctx context.Context, title string, options []option, preset string) (string, error)
	// several returns the values of any number of options; all are selected at first.
	several(ctx context.Context, title string, options []option) ([]string, error)
	// text returns a line that check accepts. An empty line means preset.
	text(ctx context.Context, title, preset string, check func(string) error) (string, error)
}

// forms asks with forms that the arrow keys move in.
type forms struct {
	in  io.Reader
	out io.Writer
}

func (f forms) run(ctx context.Context, field huh.Field) error {
	err := huh.NewForm(huh.NewGroup(field)).WithInput(f.in).WithOutput(f.out).WithShowHelp(true).RunWithContext(ctx)
	if errors.Is(err, huh.ErrUserAborted) {
		return ErrAborted
	}
	return err
}

func (f forms) choose(ctx context.Context, title string, options []option, preset string) (string, error) {
	answer := preset
	err := f.run(ctx, huh.NewSelect[string]().Title(title).Options(choices(options)...).Value(&answer))
	return answer, err
}

func (f forms) several(ctx context.Context, title string, options []option) ([]string, error) {
	answer := values(options)
	err := f.run(ctx, huh.NewMultiSelect[string]().Title(title).Options(choices(options)...).Value(&answer))
	return answer, err
}

func (f forms) text(ctx context.Context, title, preset string, check func(string) error) (string, error) {
	answer := preset
	err := f.run(ctx, huh.NewInput().Title(title).Value(&answer).Validate(func(text string) error { return check(strings.TrimSpace(text)) }))
	return strings.TrimSpace(answer), err
}

func choices(options []option) []huh.Option[string] {
	list := make([]huh.Option[string], len(options))
	for i, o := range options {
		list[i] = huh.NewOption(display.Line(o.label), o.value)
	}
	return list
}

func values(options []option) []string {
	list := make([]string, len(options))
	for i, o := range options {
		list[i] = o.value
	}
	return list
}

// lines asks with plain lines, for terminals that cannot move the cursor and for screen
// readers.
type lines struct {
	in  *bufio.Reader
	out io.Writer
}

// line prints a prompt and reads a line.
func (l lines) line(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(l.out, prompt)
	text, err := l.in.ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, io.EOF):
		fmt.Fprintln(l.out)
		return "", ErrAborted
	}
	return strings.TrimSpace(text), err
}

func (l lines) list(title string, options []option) {
	fmt.Fprintln(l.out, title)
	for i, o := range options {
		fmt.Fprintf(l.out, "  %d. %s\n", i+1, display.Line(o.label))
	}
}

func (l lines) choose(ctx context.Context, title string, options []option, preset string) (string, error) {
	l.list(title, options)
	usual := 1 + max(0, slices.Index(values(options), preset))
	for {
		text, err := l.line(ctx, fmt.Sprintf("Number [%d]: ", usual))
		if err != nil {
			return "", err
		}
		if text == "" {
			return options[usual-1].value, nil
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(options) {
			return options[n-1].value, nil
		}
		fmt.Fprintf(l.out, "Expected a number from 1 to %d.\n", len(options))
	}
}

func (l lines) several(ctx context.Context, title string, options []option) ([]string, error) {
	l.list(title, options)
	for {
		text, err := l.line(ctx, "Numbers, such as 1,3, or all or none [all]: ")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(text) {
		case "", "all":
			return values(options), nil
		case "none":
			return nil, nil
		}
		var chosen []string
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			if n, err := strconv.Atoi(part); err == nil && n >= 1 && n <= len(options) {
				chosen = append(chosen, options[n-1].value)
				continue
			}
			chosen = nil
			break
		}
		if chosen != nil {
			return chosen, nil
		}
		fmt.Fprintf(l.out, "Expected numbers from 1 to %d.\n", len(options))
	}
}

func (l lines) text(ctx context.Context, title, preset string, check func(string) error) (string, error) {
	prompt := title + ": "
	if preset != "" {
		prompt = fmt.Sprintf("%s [%s]: ", title, preset)
	}
	for {
		text, err := l.line(ctx, prompt)
		if err != nil {
			return "", err
		}
		if text == "" {
			text = preset
		}
		if err := check(text); err == nil {
			return text, nil
		} else {
			fmt.Fprintln(l.out, err)
		}
	}
}

// other is the answer to the question for the provider that names none.
const other = "other"

// localURL is the address that is proposed for another server.
const localURL = "http://localhost:11434/v1"

// defaults returns the answers of a person who takes every default: the model of the
// provider whose key is set, or OpenAI's, and all servers.
func defaults(model, baseURL string, found *survey) *answers {
	a := &answers{Model: model, BaseURL: baseURL, Servers: found.Servers}
	if a.Model == "" && a.BaseURL == "" {
		a.Model = provider.All[0].Proposed
		if i := slices.IndexFunc(provider.All, func(p *provider.Provider) bool { return os.Getenv(p.Key) != "" }); i > 0 {
			a.Model = provider.All[i].Proposed
		}
	}
	return a
}

// ask asks for everything; preset has the defaults. If final is set, the model of preset is
// not asked for.
func ask(ctx context.Context, to asker, preset *answers, final bool, found *survey) (*answers, error) {
	a := &answers{Model: preset.Model, BaseURL: preset.BaseURL}
	if !final {
		if err := a.askModel(ctx, to); err != nil {
			return nil, err
		}
	}
	if err := a.askKey(ctx, to); err != nil {
		return nil, err
	}
	if len(found.Servers) == 0 {
		return a, nil
	}
	var options []option
	for _, s := range found.Servers {
		options = append(options, option{s.Name + "   " + strings.Join(s.From, ", "), s.Name})
	}
	names, err := to.several(ctx, "These MCP servers are configured in other programs. Which ones shall consort use?", options)
	if err != nil {
		return nil, err
	}
	a.Servers, _ = found.Named(names)
	return a, nil
}

// askModel asks for the provider and the model.
func (a *answers) askModel(ctx context.Context, to asker) error {
	var options []option
	for _, p := range provider.All {
		options = append(options, option{p.Name, p.ID})
	}
	options = append(options, option{"another server with OpenAI's API, such as Ollama, vLLM or OpenRouter", other})
	chosen, err := to.choose(ctx, "Who runs the model?", options, provider.Model{Name: a.Model}.Of())
	if err != nil {
		return err
	}
	model := ""
	if p := provider.Named(chosen); p != nil {
		model = p.Proposed
	} else {
		if a.BaseURL, err = to.text(ctx, "The address of its API", localURL, checkURL); err != nil {
			return err
		}
	}
	a.Model, err = to.text(ctx, "The name of the model", model, notEmpty)
	return err
}

// askKey asks for the variable with the key.
func (a *answers) askKey(ctx context.Context, to asker) (err error) {
	own := providerKey(a.Model, a.BaseURL)
	if own == "" {
		a.KeyVariable, err = to.text(ctx, "The environment variable with its key, or nothing if it needs none", "", func(text string) error {
			if text == "" {
				return nil
			}
			return checkVariable(text)
		})
		return err
	}
	a.KeyVariable, err = to.text(ctx, "The environment variable with its key", own, checkVariable)
	return err
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("expected a name")
	}
	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("expected a URL that begins with http:// or https://")
	}
	if strings.Count(text, "://") > 1 {
		return errors.New("expected one URL; remove the proposed one (Ctrl-U) before you paste another")
	}
	if u.User != nil || u.RawQuery != "" {
		return errors.New("expected a URL without a password or a query; the next question is about the key")
	}
	return nil
}

// checkVariable refuses a key, which some people paste here.
func checkVariable(text string) error {
	if !variableName.MatchString(text) {
		return errors.New("expected the name of a variable, such as OPENAI_API_KEY, and not the key itself")
	}
	return nil
}
