// SPDX-License-Identifier: Apache-2.0

//go:build !darwin

package histories

import _ "time/tzdata" // time zones for systems without their own, such as small containers; macOS has them
