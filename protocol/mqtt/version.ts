/**
 * The version of everything below `larder/v1/`, raised with every change of a schema in this folder; a test compares
 * the schemas' hash with the one recorded here, so that no change of the wire is silent.
 *
 * 1  first version: session, two streams, commands
 * 2  commands: cycle_bin, open_fridge, close_fridge, open_main_door, reconnect_bin, reconnect_fridge; counts in the
 *    cloud's snapshot; cloud processes ask one another whether they live
 * 3  hellos name the life of the hub's service; the cloud's clock in its batches and acknowledgements
 * 4  orders are known by a UUID, not by their number; order.reduce and reduce_order; lines of the cloud's snapshot say how
 *    many units are wanted; bins say how many they hold. A hub of an older version cannot be understood.
 */
export const MQTT_PROTOCOL_VERSION = 4
/** What came before cannot be translated. */
const OLDEST_UNDERSTOOD = 4

/** Whether the cloud speaks a hub's version: the present one, and the one before it where that can be understood (SPEC §9). */
export const isSpoken = (version: number): boolean =>
  version <= MQTT_PROTOCOL_VERSION && version >= Math.max(OLDEST_UNDERSTOOD, MQTT_PROTOCOL_VERSION - 1)

/** Of the schemas and topics at this version (`test/protocol/mqtt/version.test.ts`). */
export const MQTT_SCHEMA_HASH = '77abe83a9ff5d823'
