/** Log lines for operators: structured fields and a message. `pino` satisfies it. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** A log that also passes its records to `copy`, except debug records. */
export function copiedLog(to: Log, copy: (level: keyof Log, fields: object, message: string) => void): Log {
  const at =
    (level: keyof Log) =>
    (fields: object, message: string): void => {
      copy(level, fields, message)
      to[level](fields, message)
    }
  return {
    debug: (fields, message) => to.debug(fields, message),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
