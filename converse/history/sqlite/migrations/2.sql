-- What budget.Ledger keeps. Times are microseconds since 1970.
CREATE TABLE accounts (
	name     TEXT    NOT NULL PRIMARY KEY,
	spent    INTEGER NOT NULL,
	reserved INTEGER NOT NULL, -- the sum over reservations
	ends     INTEGER           -- NULL is never
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_ends ON accounts (ends) WHERE ends IS NOT NULL;

-- The reservations that are open.
CREATE TABLE reservations (
	id      TEXT    NOT NULL,
	account TEXT    NOT NULL,
	amount  INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	PRIMARY KEY (id, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_expires ON reservations (expires);
