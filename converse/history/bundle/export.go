// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/transcript"
)

// Export writes the conversations with the given IDs, in their order, as they
// are when it reaches each of them. An ID that the store does not know is an
// error that has [history.ErrNotFound] in its chain; the conversations before it have
// been written then.
//
// Export writes each canister with a single Write, so that w can inspect the text and
// hold it back. At most one canister is in memory at a time, if the store reads them
// one at a time.
func Export(ctx context.Context, w io.Writer, store history.Store, ids ...string) error {
	for _, id := range ids {
		if err := export(ctx, w, store, id); err != nil {
			return err
		}
	}
	return nil
}

func export(ctx context.Context, w io.Writer, store history.Store, id string) error {
	put := func(line []byte, err error) error {
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		return err
	}
	info, err := store.Info(ctx, id)
	if err != nil {
		return fmt.Errorf("bundle: conversation %q: %w", id, err)
	}
	if err := put(json.Marshal(head{version, transcript.AboutOf(info)})); err != nil {
		return err
	}
	for c, err := range transcript.Canisters(ctx, store, info) {
		if err == nil {
			err = put(canister.Marshal(c.Canister))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
