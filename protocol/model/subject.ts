import type { Location } from './location.ts'

/** The subject of an alarm, a state or an event, in the form that people read. */

/** `bin 3` for a device's name on its serial line (`bin-3`). */
export const deviceSubject = (device: string): string => device.replace('-', ' ')
export const binSubject = (number: number): string => `bin ${number}`
export const cabinetSubject = (number: number): string => `cabinet ${number}`
export const fridgeSubject = (number: number): string => `fridge ${number}`
/** `2/1/4`: cabinet, shelf, row. */
export const placeText = ({ cabinet, shelf, row }: Location): string => `${cabinet}/${shelf}/${row}`
export const rowSubject = (place: Location): string => `row ${placeText(place)}`
/** The row of a subject; undefined for any other subject. */
export function rowOfSubject(subject: string): Location | undefined {
  const [, cabinet, shelf, row] = /^row (\d+)\/(\d+)\/(\d+)$/.exec(subject) ?? []
  return row === undefined ? undefined : { cabinet: Number(cabinet), shelf: Number(shelf), row: Number(row) }
}
/** A subject with the name of its product: `row 2/1/4 (Cola)`. */
export const subjectWithProduct = (subject: string, product: string): string => `${subject} (${product})`
/** A microcontroller on one serial line; `gpio`: the lines of locks and door sensors. */
export const controllerSubject = (id: string): string => `controller ${id}`
export const doorSubject = (door: string): string => `door ${door}`
/** A certificate: the setting that names its file (`MQTT_CA`), or `broker` for the broker's certificate. */
export const certificateSubject = (name: string): string => `certificate ${name}`
/** A version of the settings and the hardware description that the cloud stores for a hub. */
export const settingsSubject = (version: number): string => `settings ${version}`
/** A release of the hub's service. */
export const versionSubject = (version: string): string => `version ${version}`
export const HUB_SUBJECT = 'hub'
