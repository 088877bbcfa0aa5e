// SPDX-License-Identifier: Apache-2.0

package callers

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

// Identity is a digest of the name of a client and of the values that make out
// who somebody is: those that are not secret, since a secret one, such as a
// token that is passed on, is another one tomorrow. It is empty if there is
// neither.
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

// Client is whose load a request is: that of an identity, or, where nobody has
// one, of an address.
func Client(identity, address string) string {
	if identity != "" {
		return "id " + identity
	}
	return "ip " + Address(address)
}

// Address returns whose an address is: of IPv6, one client has a whole /64
// (RFC 6177), and could otherwise be as many as it likes.
func Address(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	prefix, _ := ip.WithZone("").Prefix(64) // it has as many bits
	return prefix.String()
}
