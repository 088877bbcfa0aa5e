// SPDX-License-Identifier: Apache-2.0

// Package opening opens the conversations of engines.
package opening

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/programerror"
)

// Open calls open and checks that it returned the conversation with this ID.
func Open(ctx context.Context, open converse.OpenFunc, id string) (*converse.Conversation, error) {
	conv, err := open(ctx, id)
	if err != nil {
		return nil, &programerror.Error{What: "engine: the conversation cannot be opened", Cause: err}
	}
	if conv != nil && conv.ID() == id {
		return conv, nil
	}
	err = fmt.Errorf("engine: the conversation that was opened is not %q: set Options.ID of the conversation", id)
	if conv != nil {
		err = errors.Join(err, conv.Close(context.WithoutCancel(ctx)))
	}
	return nil, err
}
