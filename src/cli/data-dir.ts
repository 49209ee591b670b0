/** Where an instance keeps its files. */

/**
 * The data directory unless --data-dir names it. Journals belong to one database: those of a worker on DATABASE_URL do not
 * lie where an embedded database has its own.
 */
export function readDataDirDefault(): string {
  return process.env.PARLEY_DATA_DIR || (process.env.DATABASE_URL ? '.parley-work' : '.parley')
}

/** What a suggested command needs so that it acts on this instance. */
export function dataDirOption(data_dir: string | undefined): string {
  if (data_dir === undefined || data_dir === readDataDirDefault()) return ''
  return ` --data-dir ${/^[\w./-]+$/.test(data_dir) ? data_dir : `'${data_dir.replaceAll("'", "'\\''")}'`}`
}
