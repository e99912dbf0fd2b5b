import { PostgresDialect, PostgresDriver, type DatabaseConnection } from 'kysely'
import { Pool, types, type CustomTypesConfig } from 'pg'
import type { Log } from '../../../protocol/model/log.ts'

const { INT8, NUMERIC } = types.builtins

/** PostgreSQL. Everything of ours is below 2^53, sums included, so that its 64-bit integers are plain numbers here. */
export function openPostgres(url: string, log: Log): PostgresDialect {
  const pool = new Pool({ connectionString: url, max: 10, types: plainNumbers })
  // A connection may break at any time: a restart, a failover, an administrator. Who has it at that moment gets the error by
  // the query under way; who has it and waits for something else gets it by the next one. An event without a listener would
  // end the process.
  const ended = (err: Error): void => log.warn({ err }, 'a connection to the database has ended')
  pool.on('connect', (client) => client.on('error', ended))
  pool.on('error', () => {})
  return new PatientDialect({ pool })
}

/** A connection that has ended has undone its transaction already; why it ended is what the caller must hear. */
class PatientDriver extends PostgresDriver {
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await super.rollbackTransaction(connection).catch(() => {})
  }
}

class PatientDialect extends PostgresDialect {
  readonly #config: ConstructorParameters<typeof PostgresDialect>[0]

  constructor(config: ConstructorParameters<typeof PostgresDialect>[0]) {
    super(config)
    this.#config = config
  }

  override createDriver(): PatientDriver {
    return new PatientDriver(this.#config)
  }
}

const plainNumbers: CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === INT8 || oid === NUMERIC
      ? Number
      : (types.getTypeParser(oid, format) as (value: string) => unknown),
}
