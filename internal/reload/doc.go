// SPDX-License-Identifier: Apache-2.0

// Package reload finds out that a configuration file has changed, and which keys of it
// ([Read], [Watch]), and lets another process of the same user ask for a reload ([Listen],
// [Ask]). It does not know the meaning of any key.
package reload
