/**
 * The version of everything below `larder/v1/`, raised with every change of a schema in this folder; a test compares
 * the schemas' hash with the one recorded here, so that no change of the wire is silent.
 *
 * 1  first version: session, two streams, commands
 * 2  commands: cycle_bin, open_fridge, close_fridge, open_main_door, reconnect_bin, reconnect_fridge; counts in the
 *    cloud's snapshot; cloud processes ask one another whether they live
 * 3  hellos name the life of the hub's service; the cloud's clock in its batches and acknowledgements
 * 4  orders are known by a UUID, not by their number; order.reduce and reduce_order; lines of the cloud's snapshot say how
 *    many units are wanted; bins say how many they hold.
 * 5  hubs tell by change how their rows, bins, cabinets and fridges stand (state), and their alarms in snapshots; alarms have
 *    a subject in place of a device; counts of single rows; fridges that people have confirmed; extremes of temperatures;
 *    results of commands say how the hub stands after them; what people do at the hub itself (local). A hub of an older version cannot be understood: it does not say what it will not dispense.
 * 6  the cloud tells hubs that come at once when to say hello again (later); a welcome to any hello of the session is taken;
 *    no heartbeats before the welcome. A hub of an older version says hello every 3 s, whatever the cloud tells it.
 *    settle_operation; operations of unknown outcome say when they began.
 * 7  the codes of alarms are a closed list (SPEC §11).
 * 8  cloud processes share the hubs: here, handed, ask and clock among them. Nothing is different for a hub.
 * 9  maintenance reports that were made at the hub itself (maintenance.report): protocols of its acceptance;
 *    planograms and snapshots of the cloud name the products.
 * 10 welcomes say that the hub's epoch was left for another one. A hub of an older version that is a copy of a card replaces
 *    the cloud's stock by its own.
 * 11 alarms of fridges that cannot be read (fridge_unreadable); every text, number and list of a hub's reports has a bound;
 *    a hub whose service stops in good order says goodbye (presence);
 *    reports about orders carry the order's number.
 *    Heartbeats name a failure of the hub's storage (health.storage); a hub that cannot read its journal reports it without a
 *    hello (storage).
 *    alarms of a hub that starts again and again, and of certificates that expire (hub_restarting, certificate_expiring).
 *    local entries name the person and, for a count or a restock, the units before and after.
 */
export const MQTT_PROTOCOL_VERSION = 11
/** What came before cannot be translated. */
const OLDEST_UNDERSTOOD = 6

/** Whether the cloud speaks a hub's version: the present one, and the one before it where that can be understood (SPEC §9). */
export const isSpoken = (version: number): boolean =>
  version <= MQTT_PROTOCOL_VERSION && version >= Math.max(OLDEST_UNDERSTOOD, MQTT_PROTOCOL_VERSION - 1)

/** Of the schemas and topics at this version (`test/protocol/mqtt/version.test.ts`). */
export const MQTT_SCHEMA_HASH = '00be7710f329c9f8'
