from hotlap.sweeps.run_messages import RunReport
from hotlap.sweeps.status import read_status
from sweeps.tiny_sweeps import run_all


def test_several_objectives_have_several_best_trials(tmp_path):
    # (return, training time): 1 is beaten in both by 0; 0 and 2 are each the best in one.
    figures = {1: (10.0, 5.0), 2: (9.0, 6.0), 3: (12.0, 9.0), 4: (None, 1.0)}

    def answer(task):
        return RunReport("finished", figures[task.config["ppo"]["n_epochs"]])

    _, folder, study = run_all(
        tmp_path,
        answer,
        space={"ppo.n_epochs": {"choices": [1, 2, 3, 4]}},
        objective=["final_reward_mean", "training_time_seconds"],
        direction=["maximize", "minimize"],
    )
    status = read_status(folder)
    assert [trial.number for trial in status.best] == [2, 0]
    document = status.as_dict()
    assert [best["value"] for best in document["best"]] == [[12.0, 9.0], [10.0, 5.0]]
    assert document["trials"][3]["value"] == [None, 1.0]
    assert status.best_config()[0].number == 2
    assert len(study.trials) == 4
