import { z } from 'zod'
import { bareHost } from './address.ts'

/** Whether only this machine reaches a listening address, or whether a called address stays on this machine. */
export function isLoopback(host: string): boolean {
  const name = bareHost(host).toLowerCase()
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    /^(::ffff:)?127(\.\d+){3}$/.test(name)
  )
}

/** Whether a URL sends plain text over a network: `http:` or `mqtt:`, and not to this machine. */
export function goesInClear(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return (protocol === 'http:' || protocol === 'mqtt:') && !isLoopback(hostname)
}

/** A setting with which an operator allows, by name, an exposure that is otherwise refused. */
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

/** An exposure to the network that is refused unless the operator allows it by name. */
export interface Exposure<Name extends string> {
  name: Name
  /** The problems that apply; each text begins with its setting. */
  problems: readonly (string | false)[]
}

/** The exposures that are not allowed, as sentences that name the setting to allow each. */
export const refusedExposures = <Name extends string>(
  exposures: readonly Exposure<Name>[],
  allowed: readonly Name[] = [],
): string[] =>
  exposures
    .filter(({ name }) => !allowed.includes(name))
    .flatMap(({ name, problems }) =>
      problems.flatMap((problem) =>
        problem === false ? [] : [`${problem}; ALLOW_INSECURE=${name} allows it`],
      ),
    )
