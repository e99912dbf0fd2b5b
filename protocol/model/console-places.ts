/** The pages of the owner's console by their first step below `/console`. */
export const consolePlaces = [
  'today',
  'hubs',
  'planogram',
  'orders',
  'sales',
  'deals',
  'maintenance',
  'webhooks',
  'people',
  'keys',
  'audit',
  'account',
  'invitation',
  'contact',
] as const
export type ConsolePlace = (typeof consolePlaces)[number]

/** The pages of one hub or one order: `/console/orders/17`. */
const numberedPlaces = ['hubs', 'planogram', 'orders'] as const satisfies readonly ConsolePlace[]

/** A path below the console. */
export type ConsolePath = `/${ConsolePlace}` | `/${(typeof numberedPlaces)[number]}/:id`

/** The page and the number that a path below the console names: `/orders/17`. Undefined if it names no page. */
export function consolePlaceOf(path: string): { place: ConsolePlace; id: number | undefined } | undefined {
  const [, name = 'today', number] = /^(?:\/([a-z]+))?(?:\/(\d{1,10}))?\/?$/.exec(path) ?? ['', '?']
  const known: readonly ConsolePlace[] = number === undefined ? consolePlaces : numberedPlaces
  const place = known.find((one) => one === name)
  return place && { place, id: number === undefined ? undefined : Number(number) }
}
