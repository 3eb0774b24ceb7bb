"""The JSON documents: each parses, has the keys that docs/names.md lists, and no others."""

import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names
import script

STAGES = ["found", "opened", "negotiated", "probed", "ready"]
ORIGINS = ["built-in", "program", "module folder", "TENON_MODULE_PATH"]


class Documents(script.Case):
    def ask(self, name, *options, code=0, **changes):
        """The document a command writes, read strictly."""
        done = script.run(
            script.build.tenon, name, "--json", *options, env=script.environment(**changes))
        said = "" if name == "conformance" and script.build.sanitizers else done.stderr
        self.assertEqual((done.returncode, said), (code, ""), name)  # a sanitizer tells of refused requests

        def once(pairs):
            keys = [k for k, _ in pairs]
            self.assertEqual(len(keys), len(set(keys)), f"{name}: a key twice in {keys}")
            return dict(pairs)

        self.assertTrue(done.stdout.endswith("\n"))
        return json.loads(done.stdout, object_pairs_hook=once, parse_constant=self.fail)

    def compare(self, where, keys, value):
        """Keys of `value`, an object or a list of them, against those of the page."""
        for item in value if isinstance(value, list) else [value]:
            if item is None:  # what is not there
                continue
            self.assertEqual(sorted(item), sorted(keys), f"{where}: keys there, keys on the page")
            for key, inner in keys.items():
                if inner is not None:
                    self.compare(f"{where}.{key}", inner, item[key])

    def test_every_command_has_the_keys_of_the_page(self):
        pages = names.documents()
        for name, usage in names.commands().items():
            if "[--json]" not in usage:
                continue
            self.assertIn(name, pages, "the page has no line of keys for it")
            document = self.ask(name, *names.needs(name, self.folder))
            self.assertEqual((document.pop("schema"), document.pop("command")), (1, name))
            self.compare(name, pages[name], document)

    def test_the_page_has_no_other_documents(self):
        self.assertEqual(set(names.documents()) - set(names.commands()), set())

    def check_rows(self, document):
        words = names.section("Status words")
        for row in document["modules"]:
            self.assertIn(row["stage"], STAGES)
            self.assertIn(row["origin"], ORIGINS)
            self.assertIn(f"| `{row['status']}` |", words)
            self.assertEqual(row["status"] == "ok", row["stage"] == "ready")
            self.assertNotEqual(row["message"], "")
            self.assertGreaterEqual(row["ms"], 0)
            self.assertEqual(row["path"] is None, row["origin"] == "built-in")
        for place in document["places"]:
            self.assertTrue(os.path.isabs(place["path"]))
            self.assertNotEqual(place["message"], "")

    def test_modules(self):
        document = self.ask("modules")
        self.check_rows(document)
        rows = {row["name"]: row for row in document["modules"]}
        self.assertEqual(rows["ref"]["stage"], "ready")
        if script.build.values.get("TENON_DESCRIBED") == "ON":
            self.assertEqual(rows["described"]["stage"], "ready")
            self.assertEqual(rows["described"]["platforms"], 1)
        self.assertEqual(document["places"][0]["path"], script.build.modules)
        built_in = sum(row["origin"] == "built-in" for row in document["modules"])
        self.assertEqual(document["places"][0]["modules"], len(document["modules"]) - built_in)

    def test_doctor_counts_what_is_broken(self):
        self.assertEqual(self.ask("doctor", "--quick")["broken"], 0)
        script.write_text(self.place("tenon-broken.so"), "no library\n")
        document = self.ask("doctor", "--quick", code=1, TENON_MODULE_PATH=self.folder)
        self.assertEqual(document["broken"], 1)
        self.check_rows(document)

    def test_doctor_has_the_documents_of_the_others(self):
        document = self.ask("doctor", "--quick")
        for name in ("devices", "modules", "libraries"):
            other = self.ask(name)
            for row in other.get("devices", []) + document["devices"]:
                row["memory"].update(available=0, in_use=0)
            for row in other.get("modules", []) + document["modules"]:
                row["ms"] = 0
            for row in other.get("libraries", []) + document["libraries"]:
                if row["name"] == "openmp":  # what doctor asks may bring a run-time
                    row.update(available="", path="", reason="", remedy="")
                # hwloc, which doctor has opened before
                row["reason"] = row["reason"].replace("not tried yet; already in this process", "not tried yet")
            for key in set(other) - {"command"}:
                self.assertEqual(document[key], other[key], key)

    def test_machine(self):
        machine = self.ask("doctor", "--quick")["machine"]
        known = [row["value"] for row in machine["limits"] if row["value"] is not None]
        least = [row["value"] for row in machine["limits"] if row["least"]]
        for row in machine["limits"]:
            self.assertEqual(row["value"] is not None, row["state"] == "known", row)
            self.assertNotEqual(row["origin"], "")
        self.assertEqual((machine["threads"], least), (min(known), [min(known)]))
        self.assertNotEqual(machine["hypervisor"], "")
        self.assertEqual(machine["node_count"]["value"] or 0, len(machine["nodes"]))
        memory = machine["memory"]
        self.assertGreaterEqual(memory["total"]["value"], memory["available"]["value"])
        self.assertGreater(memory["in_use"]["value"], 0)

    def test_topology(self):
        document = self.ask("doctor", "--quick")
        objects = document["topology"]["objects"]
        self.assertEqual((objects[0]["type"], objects[0]["parent"]), ("machine", None))
        for i, row in enumerate(objects[1:], 1):
            self.assertIn(row["parent"], range(i))
            self.assertEqual(row["usable"] is None, row["type"] != "thread")
            self.assertEqual(row["level"] is None, row["type"] != "cache")
        threads = [row["number"] for row in objects if row["type"] == "thread"]
        self.assertEqual(len(threads), len(set(threads)))
        self.assertEqual(len(threads), document["machine"]["hardware_threads"]["value"])
        self.assertNotEqual(document["topology"]["source"], "")

    def test_version(self):
        document = self.ask("version")
        text = script.run(script.build.tenon, "version").stdout
        for key in ("version", "module_abi", "target", "compiler", "sanitizer"):
            self.assertIn(document[key], text)
        kind = [s for s in script.build.sanitizers if s != "undefined"]
        self.assertEqual(document["sanitizer"], kind[0] if kind else "none")

    def test_odd_names_stay_json(self):
        odd = os.fsencode(self.folder) + b'/q"\\\n\t\x01\xff\xc3\xa4'
        os.mkdir(odd)
        with open(odd + b"/tenon-\xe2\x82.so", "wb") as file:
            file.write(b"no library")
        document = self.ask("modules", TENON_MODULE_PATH=os.fsdecode(odd))
        row = document["modules"][-1]
        self.assertEqual(row["status"], "corrupt")
        self.assertIn('/q"\\\n\t\x01\ufffd\u00e4/tenon-', row["path"])

    def test_fresh_says_the_same(self):
        module = os.path.join(script.build.folder, "tests", "abi", "tenon-twice.so")
        shutil.copy(module, self.folder)
        changes = {"TENON_MODULE_PATH": self.folder, "TENON_CACHE": self.place("cache")}
        documents = [self.ask("modules", *o, **changes) for o in ([], [], ["--fresh"])]
        for document in documents:
            row = document["modules"][-1]
            self.assertEqual((row["name"], row["stage"], row["devices"]), ("twice", "ready", 1))


if __name__ == "__main__":
    script.main()
