import { keep, useData } from './data.ts'
import { ask, can } from './session.ts'

/** Names of people and API keys by their actors in the audit: `identity:SUB`, `key:PREFIX`. */
const readNames = () =>
  keep('names', async (): Promise<ReadonlyMap<string, string>> => {
    if (!can('people:read')) return new Map()
    const [people, keys] = await Promise.all([ask('GET /owners/people'), ask('GET /owners/keys')])
    return new Map([
      ...people.data.map(({ identity, name }) => [`identity:${identity}`, name ?? identity] as const),
      ...keys.data.map(({ prefix, name }) => [`key:${prefix}`, name] as const),
    ])
  })

/** The name of an actor. An actor of another owner, or a removed person, has only an identity. */
export function useActorName(): (actor: string) => string {
  const { data } = useData(readNames, ['names'])
  return (actor) => data?.get(actor) ?? actor.replace(/^(key|identity|person|user):/, '')
}
