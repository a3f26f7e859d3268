CREATE TABLE runs (
  id TEXT PRIMARY KEY, directory TEXT NOT NULL, verdict TEXT NOT NULL, started REAL NOT NULL,
  finished REAL NOT NULL, model TEXT NOT NULL, version TEXT NOT NULL, change TEXT NOT NULL,
  state TEXT NOT NULL, summary TEXT NOT NULL, journal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_started ON runs (started);
CREATE INDEX runs_verdict ON runs (verdict, started);

CREATE TABLE commits (
  hash TEXT NOT NULL, run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, PRIMARY KEY (hash, run)
) WITHOUT ROWID;
CREATE INDEX commits_run ON commits (run);

CREATE TABLE steps (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, place INTEGER NOT NULL, step TEXT NOT NULL,
  loop TEXT NOT NULL, level INTEGER NOT NULL, variant TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL,
  verdicts TEXT NOT NULL, seconds REAL, command TEXT NOT NULL, recipe TEXT NOT NULL,
  boundary TEXT NOT NULL, cause TEXT NOT NULL,
  PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE INDEX steps_level ON steps (loop, level, variant);

CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, machine INTEGER NOT NULL);

CREATE TABLE metrics (
  run TEXT NOT NULL, place INTEGER NOT NULL, tag INTEGER NOT NULL REFERENCES tags, points INTEGER NOT NULL,
  non_finite INTEGER NOT NULL, first REAL, last REAL, tail REAL, median REAL, low REAL, high REAL,
  PRIMARY KEY (run, place, tag), FOREIGN KEY (run, place) REFERENCES steps ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX metrics_tag ON metrics (tag);
