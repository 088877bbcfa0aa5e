// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/spf13/cobra"
)

// bundleVersion is that of the form of an export in JSON lines.
const bundleVersion = 1

// bundleHead is the first line of such an export; a canister stands on each line
// behind it.
type bundleHead struct {
	Version int `json:"consort_conversation"`
	conversationJSON
}

// maxHead bounds that line, in bytes.
const maxHead = 1 << 20

func (p *program) historyExportCommand() *cobra.Command {
	var as, to string
	cmd := p.withHistory(&cobra.Command{
		Use:   "export ID",
		Short: "Write a conversation down, for another store or to read",
		Args:  cobra.ExactArgs(1),
		RunE:  p.onShelf(func(s *shelf, ctx context.Context, args []string) error { return s.export(ctx, args[0], as, to) }),
	})
	cmd.Flags().StringVar(&as, "format", "jsonl", "write `FORMAT`: jsonl, which history import takes, or markdown or html, to read")
	cmd.Flags().StringVarP(&to, "output", "o", "", "write to `FILE` (default: standard output)")
	return cmd
}

func (s *shelf) export(ctx context.Context, id, as, to string) error {
	write := s.bundle
	if form, ok := readable[as]; ok {
		write = func(ctx context.Context, info history.Info, put func(string) error) error {
			return s.read(ctx, info, form, put)
		}
	} else if as != "jsonl" {
		return usagef("--format %s: expected jsonl, markdown or html", as)
	}
	info, err := known(ctx, s.store, id)
	if err != nil {
		return err
	}
	if to == "" {
		return write(ctx, info, func(text string) error { s.put(text); return s.screen.failure() })
	}
	return replace(to, func(file io.Writer) error {
		return write(ctx, info, func(text string) error {
			_, err := io.WriteString(file, s.clean(text))
			return err
		})
	})
}

// bundle writes the form that import takes.
func (s *shelf) bundle(ctx context.Context, info history.Info, put func(string) error) error {
	head, err := json.Marshal(bundleHead{bundleVersion, newConversationJSON(info)})
	if err != nil {
		return err
	}
	if err := put(string(head) + "\n"); err != nil {
		return err
	}
	return s.canisters(ctx, info, func(_ int, c canister.Canister) error {
		line, err := canister.Marshal(c)
		if err != nil {
			return err
		}
		return put(string(line) + "\n")
	})
}

// read writes a form for people.
func (s *shelf) read(ctx context.Context, info history.Info, as form, put func(string) error) error {
	if err := put(as.begin(info)); err != nil {
		return err
	}
	err := s.canisters(ctx, info, func(place int, c canister.Canister) error { return put(as.part(newPart(place, c))) })
	if err != nil {
		return err
	}
	return put(as.end)
}

// replace writes a file that is there when all of it is, for its user alone.
func replace(path string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".export-*")
	if err != nil {
		return usagef("--output: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	buffered := bufio.NewWriter(file)
	err = errors.Join(write(buffered), buffered.Flush(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (p *program) historyImportCommand() *cobra.Command {
	var id string
	cmd := p.withHistory(&cobra.Command{
		Use:   "import FILE",
		Short: "Take up a conversation that was exported as jsonl",
		Long: "Import takes up a conversation with its title, its tags and its owner, and prints its\n" +
			"identity. FILE is what history export has written; - is standard input.",
		Args: cobra.ExactArgs(1),
		RunE: p.withShelf(true, func(s *shelf, ctx context.Context, args []string) error { return s.importFile(ctx, args[0], id) }),
	})
	cmd.Flags().StringVar(&id, "id", "", "the identity `NEW` of the conversation (default: that of the file)")
	return cmd
}

func (s *shelf) importFile(ctx context.Context, path, id string) error {
	file := s.stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return usagef("%w", err)
		}
		defer file.Close()
	}
	head, canisters, err := readBundle(file)
	if err != nil {
		return usagef("%s: %w", path, err)
	}
	if id == "" {
		id = head.ID
	}
	change := history.Change{Title: &head.Title, Tags: &head.Tags, Owner: &head.Owner}
	if _, err := change.Apply(history.Info{}); err != nil {
		return usagef("%s: %w", path, err)
	}
	if err := history.CheckID(id); err != nil {
		return usagef("%w", err)
	}
	if err := s.add(ctx, id, canisters); err != nil {
		return taken(err, id)
	}
	if err := s.store.Describe(ctx, id, change); err != nil {
		return err
	}
	s.put(id + "\n")
	return s.screen.failure()
}

// add makes a conversation, which must not exist.
func (s *shelf) add(ctx context.Context, id string, canisters []canister.Canister) error {
	switch _, err := s.store.Info(ctx, id); {
	case err == nil:
		return history.ErrExists
	case !errors.Is(err, history.ErrNotFound):
		return err
	}
	return s.store.Append(ctx, id, 0, canisters...)
}

// readBundle reads an export and checks that it is whole, and a history.
func readBundle(from io.Reader) (bundleHead, []canister.Canister, error) {
	var head bundleHead
	buffered := bufio.NewReaderSize(from, maxHead)
	line, err := buffered.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return head, nil, err
	}
	if json.Unmarshal(line, &head) != nil || head.Version < 1 {
		return head, nil, errors.New("this is no export of a conversation in the format jsonl")
	}
	if head.Version > bundleVersion {
		return head, nil, fmt.Errorf("the export has the format %d, and this program knows those up to %d: %w", head.Version, bundleVersion, history.ErrNewer)
	}
	var canisters []canister.Canister
	for c, err := range canister.Decode(buffered) {
		if err != nil {
			return head, nil, fmt.Errorf("behind the first line: %w", err)
		}
		canisters = append(canisters, c)
	}
	if len(canisters) != head.Length || head.Length == 0 {
		return head, nil, fmt.Errorf("the export has %d canisters, and its first line says %d", len(canisters), head.Length)
	}
	for _, problem := range canister.Check(canisters) {
		if problem.Rule != canister.RuleOpen {
			return head, nil, fmt.Errorf("this is no history: %v", problem)
		}
	}
	return head, canisters, nil
}
