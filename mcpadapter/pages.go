// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/invoker"
)

// Limits of one listing.
const (
	maxPages  = 1000
	maxListed = 10_000
)

// everyPage asks for one page of a list after another (MCP 2025-11-25,
// server/utilities/pagination). next returns how many were on the page, and the
// cursor of the one that follows, empty for none.
func (c *connection) everyPage(ctx context.Context, what string, next func(ctx context.Context, cursor string) (int, string, error)) error {
	failed := func(err error) error {
		return fmt.Errorf("server %q: listing %s: %w", c.options.Server, what, err)
	}
	listed, cursor, seen := 0, "", make(map[string]bool)
	for range maxPages {
		count, following, err := next(ctx, cursor)
		switch listed += count; {
		case err != nil:
			return failed(err)
		case listed > maxListed:
			return failed(invoker.Failf(invoker.Protocol, "there are more than %d of them", maxListed))
		case following == "":
			return nil
		case seen[following]:
			return failed(invoker.Failf(invoker.Protocol, "the list goes round in circles: a cursor came twice"))
		}
		cursor = following
		seen[cursor] = true
	}
	return failed(invoker.Failf(invoker.Protocol, "the list has more than %d pages", maxPages))
}
