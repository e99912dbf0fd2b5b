/** An operator's mistake; the message is for the operator. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Converts the error of a port that cannot be used into a `UsageError` that names the setting; throws any other error. */
export function onPort(setting: 'PORT' | 'MQTT_PORT' | 'METRICS_PORT', port: number, host: string) {
  return (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException
    const problem = (
      {
        EADDRINUSE: `port ${port} of ${host} is in use`,
        EACCES: `port ${port} may not be used by this user`,
      } as Record<string, string>
    )[code ?? '']
    if (problem === undefined) throw error
    throw new UsageError(`${problem}: set ${setting} to another one`, { cause: error })
  }
}
