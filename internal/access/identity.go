// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/consort-go/consort/invoker"
)

// Identity returns a digest of the name of a client and of the values that identify it.
// Secret values are left out if there is a name or another value, because a secret,
// such as a token that is passed on, may change. It returns "" if there is neither a
// name nor a value.
func Identity(name string, values []invoker.Value) string {
	if name == "" && len(values) == 0 {
		return ""
	}
	open := slices.DeleteFunc(slices.Clone(values), invoker.Value.IsSecret)
	if name == "" && len(open) == 0 {
		open = values
	}
	digest := sha256.New()
	fmt.Fprintf(digest, "%q\n", name)
	for _, v := range invoker.TrustedFrom(invoker.WithTrusted(context.Background(), open...)) {
		text, err := v.Reveal()
		if err != nil {
			text = json.RawMessage(err.Error())
		}
		fmt.Fprintf(digest, "%q=%q\n", v.Name(), text)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// Client returns the key of the client whose limits apply to a request: its identity,
// or its address if it has no identity.
func Client(identity, address string) string {
	if identity != "" {
		return "id " + identity
	}
	return "ip " + Address(address)
}

// Address returns the part of an address that identifies a client. For IPv6 this is the
// /64, because one client has a whole /64 (RFC 6177) and could otherwise appear as many
// clients.
func Address(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	prefix, _ := ip.WithZone("").Prefix(64) // 64 bits are always valid here
	return prefix.String()
}
