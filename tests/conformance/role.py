"""Prints the configuration of a template's handler, as MiniStack's CloudFormation expands it. Needs MiniStack's Python.

    role.py '[[TEMPLATE, {NAME: VALUE}], ...]'

For each template with its parameters, prints the policies of the handler's role, its environment, and its log group.
"""

import json
import sys
from pathlib import Path

from ministack.services.cloudformation import engine

sys.path.append(str(Path(__file__).parents[2] / "packaging"))
import expand  # noqa: E402

ARNS = {
    "AWS::SQS::Queue": "arn:aws:sqs:{place}:{name}",
    "AWS::Lambda::Function": "arn:aws:lambda:{place}:function:{name}",
    # In CloudFormation, the ARN of a log group ends with `:*`.
    "AWS::Logs::LogGroup": "arn:aws:logs:{place}:log-group:{name}:*",
}


def packaged(path: str) -> dict:
    """A template as CloudFormation receives it."""
    if path.endswith(".json"):
        return json.loads(Path(path).read_text(encoding="utf-8"))
    template = expand.read(path)
    for function in expand.functions(template):
        function["Properties"]["CodeUri"] = "s3://bucket/key"
    return expand.expand(template)


def handler_of(path: str, given: dict) -> dict:
    template = packaged(path)
    values = [{"Key": name, "Value": value} for name, value in given.items()]
    parameters = engine._resolve_parameters(template, values)
    conditions = engine._evaluate_conditions(template, parameters)
    resources = {id: it for id, it in template["Resources"].items() if conditions.get(it.get("Condition"), True)}
    made = {id: made_of(id, it["Type"]) for id, it in resources.items()}

    def resolved(value):
        return engine._resolve_refs(value, made, parameters, conditions, {}, "comeback", "comeback")

    (handler,) = [it["Properties"] for it in resources.values() if "TARGET_FUNCTIONS" in json.dumps(it["Properties"])]
    (role,) = handler["Role"]["Fn::GetAtt"][:1]
    policies = [policy["PolicyDocument"] for policy in resources[role]["Properties"].get("Policies", [])]
    for it in resources.values():
        if it["Type"] == "AWS::IAM::Policy" and {"Ref": role} in it["Properties"]["Roles"]:
            policies.append(it["Properties"]["PolicyDocument"])
    found = {
        "policies": policies,
        "environment": handler["Environment"]["Variables"],
        "log_group": handler["LoggingConfig"]["LogGroup"],
    }
    return resolved(found)


def made_of(id: str, kind: str) -> dict:
    """A resource as MiniStack's CloudFormation stores it."""
    region, account, name = engine.get_region(), engine.get_account_id(), f"comeback-{id}-ABCDEFGHIJKL"
    physical = f"https://sqs.{region}.amazonaws.com/{account}/{name}" if kind == "AWS::SQS::Queue" else name
    arn = ARNS.get(kind, "").format(place=f"{region}:{account}", name=name)
    return {"PhysicalResourceId": physical, "Attributes": {"Arn": arn} if arn else {}}


if __name__ == "__main__":
    json.dump([handler_of(*it) for it in json.loads(sys.argv[1])], sys.stdout)
