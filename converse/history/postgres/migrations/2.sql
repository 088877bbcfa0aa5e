-- What budget.Ledger keeps.
CREATE TABLE @.accounts (
	name     text   COLLATE "C" PRIMARY KEY,
	spent    bigint NOT NULL,
	reserved bigint NOT NULL, -- the sum over reservations
	ends     timestamptz      -- NULL is never
) WITH (fillfactor = 80);
CREATE INDEX accounts_ends ON @.accounts (ends) WHERE ends IS NOT NULL;

-- The reservations that are open.
CREATE TABLE @.reservations (
	id      text   COLLATE "C" NOT NULL,
	account text   COLLATE "C" NOT NULL,
	amount  bigint NOT NULL,
	expires timestamptz NOT NULL,
	PRIMARY KEY (id, account)
);
CREATE INDEX reservations_expires ON @.reservations (expires);
