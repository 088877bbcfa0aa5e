-- SPDX-License-Identifier: Apache-2.0

-- AUTOINCREMENT: the id of a deleted task is never given to another one, so
-- that a model that remembers it does not meet a stranger.
CREATE TABLE tasks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    INTEGER NOT NULL,
    title      TEXT    NOT NULL CHECK (title <> '' AND length(title) <= 500),
    completed  INTEGER NOT NULL DEFAULT 0 CHECK (completed IN (0, 1)),
    created_at TEXT    NOT NULL
) STRICT;
