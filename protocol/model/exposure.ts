import { z } from 'zod'
import { bareHost } from './address.ts'

/** Whether only this machine reaches an address to listen at, or an address that is called stays on this machine. */
export function isLoopback(host: string): boolean {
  const name = bareHost(host).toLowerCase()
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    /^(::ffff:)?127(\.\d+){3}$/.test(name)
  )
}

/** Whether what goes to a URL goes in clear over a network: `http:` or `mqtt:`, and not to this machine. */
export function goesInClear(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return (protocol === 'http:' || protocol === 'mqtt:') && !isLoopback(hostname)
}

/** The setting by which an operator takes on by name what is refused where others reach it. */
export const allowInsecure = <const Names extends readonly [string, ...string[]]>(
  names: Names,
  describe: string,
) => ({
  schema: z
    .string()
    .transform((text) => text.split(',').map((name) => name.trim()))
    .pipe(z.array(z.enum(names, `must be of ${names.join(', ')}, separated by commas`)))
    .optional(),
  describe,
})

/** Something that is refused unless it is allowed by its name. */
export interface Exposure<Name extends string> {
  name: Name
  /** What is wrong, as far as it is; each begins with its setting. */
  problems: readonly (string | false)[]
}

/** What is exposed and not allowed, in sentences that say how to allow it. */
export const refusedExposures = <Name extends string>(
  exposures: readonly Exposure<Name>[],
  allowed: readonly Name[] = [],
): string[] =>
  exposures
    .filter(({ name }) => !allowed.includes(name))
    .flatMap(({ name, problems }) =>
      problems.flatMap((problem) =>
        problem === false ? [] : [`${problem}; ALLOW_INSECURE=${name} takes it on`],
      ),
    )
