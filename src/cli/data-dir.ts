/** Where an instance keeps its files. */

/**
 * The data directory unless --data-dir names one. A journal belongs to one database, so a worker on DATABASE_URL keeps its
 * journals apart from those of an embedded database.
 */
export function readDataDirDefault(): string {
  return process.env.PARLEY_DATA_DIR || (process.env.DATABASE_URL ? '.parley-work' : '.parley')
}

/** The option that makes a suggested command act on this instance. */
export function dataDirOption(data_dir: string | undefined): string {
  if (data_dir === undefined || data_dir === readDataDirDefault()) return ''
  return ` --data-dir ${/^[\w./-]+$/.test(data_dir) ? data_dir : `'${data_dir.replaceAll("'", "'\\''")}'`}`
}
